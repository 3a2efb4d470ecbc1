"""Windows without rows leave for each known key, as long after its rows as was asked."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.operators.aggregate.written import Window
from slackwater.runtime.registry.operators import make_operator
from tests.contract.test_operators import AGGREGATE, ROWS, VALUES
from tests.operators.literal import Leaves, Segment, reads_of, run, streams
from tests.support.chance import chance
from tests.support.flows import simulated


def with_empty(leaves: Leaves, window: Window, empty: int) -> Leaves:
    """Return the leaves, and those of windows without rows, by event time."""
    full: dict[str, set[int]] = defaultdict(set)
    for _, _, key, start, *_ in leaves:
        full[key].add((int(start) - window.offset_ns) // window.slide_ns)
    made = list(leaves)
    for key, numbers in full.items():
        for number in range(min(numbers), max(numbers) + 60):
            start, end = int(window.start_ns(number)), int(window.end_ns(number))
            before = [each for each in numbers if each < number]
            if number not in numbers and start < int(window.end_ns(max(before))) + empty:
                made.append((str(end - 1), "0", key, str(start), str(end), "None", "0"))
    return sorted(made, key=lambda row: int(row[0]))


@given(
    segments=streams([VALUES]),
    window=st.sampled_from([Window(10, 10), Window(12, 5), Window(7, 7, 3)]),
    empty=st.integers(1, 40),
    cut=chance,
)
def test_known_keys_leave_windows_without_rows_for_so_long(
    segments: list[Segment], window: Window, empty: int, cut: Random
) -> None:
    plain = replace(AGGREGATE, window=window)
    step = replace(plain, empty_ns=empty)
    expected = with_empty(run(make_operator(plain), reads_of(segments, [ROWS])), window, empty)
    whole = run(make_operator(step), reads_of(segments, [ROWS]))
    assert sorted(whole) == sorted(expected)
    assert [row[0] for row in whole] == [row[0] for row in expected]
    assert run(make_operator(step), reads_of(segments, [ROWS], cut)) == whole


def test_a_day_that_a_zone_leaves_out_is_no_window() -> None:
    """Samoa had no 30 December 2011."""
    hours = np.array(["2011-12-29T12", "2012-01-01T20"], "datetime64[ns]")
    flow = sw.Dataflow("days")
    rows = flow.source("rows", sw.table({"t": hours, "user": ["a", "a"]}), event_time="t")
    window = sw.calendar("day", zone="Pacific/Apia")
    rows.aggregate(by="user", window=window, empty="3d", n=sw.count()).sink(
        "out", sw.collect_sink()
    )
    job, _ = simulated(flow)
    out = job.result("out")
    assert out["n"].to_pylist() == [1, 0, 0, 1, 0, 0, 0]
    assert all(pc.less(out["window_start"], out["window_end"]).to_pylist())


@pytest.mark.parametrize("replicas", [None, 1, 3])
def test_days_without_rows_have_counts_of_0_whatever_replicas(replicas: int | None) -> None:
    days = np.array([0, 2, 2, 5]) * 86_400 * NS_PER_SECOND
    table = pa.table({"t": days, "user": ["a", "a", "b", "b"], "x": [1.0, 2, 3, 4]})
    flow = sw.Dataflow("days")
    rows = flow.source("rows", sw.table(table), event_time="t", time_unit="ns")
    rows.aggregate(
        by="user",
        window=sw.calendar("day"),
        empty="2d",
        n=sw.count(),
        of=sw.count_distinct("x"),
        x=sw.sum("x"),
        all=sw.collect("x"),
        last=sw.last("x"),
        replicas=replicas,
    ).sink("out", sw.collect_sink())
    job, _ = simulated(flow)
    out = job.result("out").sort_by([("user", "ascending"), ("window_start", "ascending")])
    assert out["n"].to_pylist() == [1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0]
    assert out["of"].to_pylist() == out["n"].to_pylist()
    assert out["x"].to_pylist() == [1, None, 2, None, None, 3, None, None, 4, None, None]
    assert out["all"].to_pylist() == [x and [x] for x in out["x"].to_pylist()]
    assert out["last"].to_pylist() == out["x"].to_pylist()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"empty": True}, "write a length of time"),
        ({"empty": "0s"}, "more than zero"),
        ({"empty": "700d"}, "100,000 is the most"),
        ({"empty": "1h", "late": "correct"}, "late="),
        ({"empty": "1h", "drift": "1s"}, "drift="),
        ({"empty": "1h", "window": sw.session("1s")}, "windows that all keys share"),
    ],
    ids=str,
)
def test_empty_is_refused_with_a_way_out(options: dict[str, object], text: str) -> None:
    flow = sw.Dataflow("days")
    rows = flow.source("rows", sw.table({"t": [0], "x": [1]}), event_time="t", time_unit="ns")
    with pytest.raises(SettingError, match=text):
        rows.aggregate(**{"window": sw.tumbling("10s"), "n": sw.count(), **options})  # type: ignore[arg-type]

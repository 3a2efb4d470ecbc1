"""Cumulative windows begin together, and each ends one step later, whatever the options."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.operators.aggregate.window import Windows
from tests.support.flows import simulated

STEP = st.integers(1, 4)
TIMES = st.lists(st.integers(-40, 40), min_size=1, max_size=12)


def window_of(step: int, steps: int, offset: int = 0, closed: Any = "start") -> Any:
    return sw.cumulative(f"{step * steps}s", f"{step}s", offset=f"{offset}s", closed=closed)


def expected(
    times: list[int], step: int, steps: int, offset: int, closed: str
) -> dict[tuple[int, int], int]:
    """Return {(start, end): rows} by the rule, row by row."""
    counts: Counter[tuple[int, int]] = Counter()
    size = step * steps
    for time in times:
        start = (time - offset) // size * size + offset
        if closed == "end":
            start = (time - offset - 1) // size * size + offset
        for end in range(start + step, start + size + 1, step):
            counts[start, end] += time < end or (closed == "end" and time == end)
    return {bounds: rows for bounds, rows in counts.items() if rows}


@given(TIMES, STEP, st.integers(1, 5), st.integers(0, 9), st.sampled_from(["start", "end"]))
def test_each_row_is_in_the_window_of_its_step_and_in_those_that_end_later(
    times: list[int], step: int, steps: int, offset: int, closed: str
) -> None:
    flow = sw.Dataflow("f")
    rows = flow.source("rows", sw.table({"t": sorted(times)}), event_time="t", time_unit="s")
    window = window_of(step, steps, offset, closed)
    rows.aggregate(window=window, n=sw.count()).sink("out", sw.collect_sink())
    rows.newest(window=window).sink("newest", sw.collect_sink())
    job, _ = simulated(flow)
    answer = expected(times, step, steps, offset, closed)
    assert counted(job.result("out")) == answer
    newest = job.result("newest")
    assert set(counted(newest.append_column("n", newest["t"]))) == set(answer)


def counted(table: pa.Table) -> dict[tuple[int, int], int]:
    bounds = [
        (table[name].cast(pa.int64()).to_numpy() // 10**9).tolist()
        for name in ("window_start", "window_end")
    ]
    return dict(zip(zip(*bounds, strict=True), table["n"].to_pylist(), strict=True))


@given(STEP, st.integers(2, 5), st.integers(0, 9), st.integers(-30, 30))
def test_panes_and_windows_agree(step: int, steps: int, offset: int, window: int) -> None:
    windows = Windows(window_of(step, steps, offset))
    kind = window_of(step, steps, offset)
    first_ns, end_ns = kind.start_ns(window), kind.end_ns(window)
    panes = list(range(-60, 60))
    lasts = [int(windows.lasts_ns(pane)) for pane in panes]  # type: ignore[arg-type]
    inside = [p for p, last in zip(panes, lasts, strict=True) if first_ns <= last < end_ns]
    is_open = windows.first_open_pane(window - 1)
    assert inside[0] == is_open
    assert windows.first_whole_pane(window) == inside[-1] + 1
    for pane in inside:
        assert windows.last_without(pane) >= window - 1


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_late_row_corrects_each_window_that_it_is_in(replicas: int) -> None:
    flow = sw.Dataflow("f")
    rows = flow.source(
        "rows",
        sw.table({"t": [1, 3, 12, 2, 30], "heard": [1, 3, 12, 13, 30], "k": ["a"] * 5}),
        event_time="t",
        arrival="heard",
        speed=1.0,
        time_unit="s",
        out_of_order="late",
        disorder="20s",
    )
    rows.aggregate(
        by="k",
        window=sw.cumulative("6s", "2s"),
        slack="0s",
        late="correct",
        n=sw.count(),
        replicas=replicas,
    ).sink("out", sw.collect_sink())
    job, report = simulated(flow)
    table = job.result("out")
    ends = (table["window_end"].cast(pa.int64()).to_numpy() // 10**9).tolist()
    results = list(zip(ends, table["revision"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert [row for row in results if row[0] <= 6] == [
        *((2, 0, 1), (4, 0, 2), (6, 0, 2)),
        *((4, 1, 3), (6, 1, 3)),
    ]
    assert report.ledger.is_balanced


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sw.cumulative("10s", "3s"), "the size must be whole steps"),
        (lambda: sw.cumulative("10s", "20s"), "the size must be whole steps"),
        (lambda: sw.cumulative("10s", "0s"), "step of cumulative windows"),
        (lambda: sw.cumulative("10h", "1ms"), "36,000,000 windows; 100,000 is the most"),
        (
            lambda: (
                sw.Dataflow("f")
                .source("rows", sw.table({"t": [1]}), event_time="t")
                .aggregate(
                    window=sw.cumulative("1d", "1h"),
                    n=sw.count(),
                    close=sw.closing.ignore(),
                    name="days",
                )
            ),
            "step 'days': close= knows windows .*omit close=, or write tumbling",
        ),
    ],
)
def test_windows_that_cannot_be_are_refused(make: Any, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        make()

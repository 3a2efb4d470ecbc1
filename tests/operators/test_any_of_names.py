"""Names of the events of an `any_of`: the same, whatever the order in which they are written."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.model import END_NS, NS_PER_SECOND, Batch
from slackwater.runtime.patterns.operator.machine import pattern_machine
from slackwater.runtime.patterns.operator.step import PatternStep
from tests.support.examples import a_third
from tests.support.told import gate_read

NAMES = "abc"


def matches_of(part: Any, rows: list[set[str]], **settings: str) -> list[str]:
    """Return the events of all matches of `seq(start, part)` over rows, one a second."""
    times = np.arange(len(rows), dtype=np.int64) * NS_PER_SECOND
    columns = {name: np.array([name in row for row in rows]) for name in ("s", *NAMES)}
    columns["v"] = np.arange(len(rows)) % 3
    columns["time"] = times
    flow = sw.Dataflow("flow")
    source = sw.table(pa.table(columns))
    start = sw.patterns.event("s", where=sw.col("s"))
    stream = flow.source("rows", source, event_time="time", time_unit="ns").pattern(
        sw.patterns.seq(start, part), within="4s", **settings
    )
    step = flow.steps[stream.name]
    assert isinstance(step, PatternStep)
    read = gate_read(
        [Batch(event_time_ns=times, stimulus_time_ns=times, columns=columns)],
        [None],
        END_NS,
        0,
        END_NS,
    )
    found = pattern_machine(step).work(read, 0).rows
    return [] if found is None else found.columns["events"].tolist()


@pytest.mark.parametrize("distinct", [None, "v"])
@given(data=st.data(), count=st.integers(1, 3))
@a_third
def test_events_of_any_of_have_the_same_names_in_any_order(
    distinct: str | None, data: st.DataObject, count: int
) -> None:
    rows = data.draw(st.lists(st.sets(st.sampled_from("sabc")), min_size=2, max_size=8))
    selection = data.draw(st.sampled_from(["first", "last", "each"]))
    events = {
        "a": sw.patterns.event("a", where=sw.col("a")),
        "b": sw.patterns.event("b", where=sw.col("b") & (sw.col("s.v") < sw.col("v"))),
        "c": sw.patterns.event("c", where=sw.col("c")),
    }
    written = [
        sw.patterns.any_of(count, *(events[name] for name in order), distinct=distinct)
        for order in permutations(NAMES)
    ]
    found = [matches_of(part, rows, selection=selection) for part in written]
    assert found == [found[0]] * len(found)


def test_one_of_several_events_is_the_first_by_the_alphabet() -> None:
    a, b = (sw.patterns.event(name, where=sw.col(name)) for name in "ab")
    for part in (sw.patterns.any_of(1, b, a), sw.patterns.any_of(1, a, b)):
        (found,) = matches_of(part, [{"s"}, {"a", "b"}])
        assert '"a"' in found
        assert '"b"' not in found
    either = sw.patterns.either(b, a)  # in the order written
    (found,) = matches_of(either, [{"s"}, {"a", "b"}])
    assert '"b"' in found

"""A source that has not been heard yet is waited for, by windows that close in time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.closing.policy import ClosingCounts

MS = 1_000_000
LATE_START = 3_000


def events(seed: int, *, start_ms: int = 0, length_ms: int = 20_000, key: int = 0) -> pa.Table:
    """Rows each 30 ms that come 2 to 12 ms later, and not before the source starts."""
    chance = np.random.default_rng(seed)
    ts = np.arange(key, length_ms, 30)
    at = np.maximum(np.maximum.accumulate(ts + chance.integers(2, 12, len(ts))), start_ms)
    return pa.table({"ts": ts * MS, "at": at * MS, "key": np.full(len(ts), key)})


EMPTY = events(1, length_ms=0)


def ran(close: Any, *tables: pa.Table, arrival: bool = True, **more: Any) -> tuple[Any, Any]:
    """Return the rows that left, by window and key, and what closing came to."""
    flow = sw.Dataflow("late-start")
    times: dict[str, Any] = {"event_time": "ts", "time_unit": "ns"}
    times |= {"arrival": "at"} if arrival else {}
    times |= {name: more.pop(name) for name in ("speed", "idle") if name in more}
    sources = [
        flow.source(f"s{n}", sw.table(table), **times).select("key")
        for n, table in enumerate(tables)
    ]
    merged = flow.merge(*sources)
    counts = merged.aggregate(
        by="key", window=sw.tumbling("100ms"), n=sw.count(), close=close, name="counts", **more
    )
    counts.sink("out", sw.collect_sink())
    with sw.Simulation(2) as nodes:
        job = nodes.submit(flow)
        report = job.wait()
        out = job.result("out")
    closing = [one.closing for one in report.stages if one.closing is not None]
    return sorted(zip(*out.to_pydict().values(), strict=True), key=str), closing


def total(closing: list[ClosingCounts]) -> ClosingCounts:
    names = ("windows", "early", "missed", "slack_ns")
    return ClosingCounts(*(sum(getattr(one, name) for one in closing) for name in names), None)


FIRST, SECOND = events(1), events(2, start_ms=LATE_START, key=1)


@pytest.mark.parametrize("more", [{}, {"speed": 4.0}, {"replicas": 2}], ids=str)
@pytest.mark.parametrize(
    "close", [sw.closing.event_driven(), sw.closing.event_driven(type="key")], ids=["", "type"]
)
def test_event_driven_misses_nothing_of_a_source_that_starts_late(close: Any, more: Any) -> None:
    _, closing = ran(close, FIRST, SECOND, **more)
    assert total(closing).windows >= 195
    assert total(closing).missed == 0


def test_probslack_keeps_its_budget_and_states_what_it_misses() -> None:
    rows, closing = ran(sw.closing.probslack(0.05), FIRST, SECOND)
    found = total(closing)
    assert found.windows >= 195
    assert found.missed <= 0.05 * found.windows
    chances = [row[-1] for row in rows if row[-1] is not None]
    assert abs(found.missed - sum(chances) / 2) <= 8  # two keys' rows for each window


def test_results_do_not_depend_on_the_pace_or_the_number_of_slots_of_a_late_start() -> None:
    close = sw.closing.probslack(0.05)
    whole, _ = ran(close, FIRST, SECOND)
    assert ran(close, FIRST, SECOND, speed=20.0)[0] == whole


@pytest.mark.parametrize(
    "close", [sw.closing.event_driven(), sw.closing.probslack(0.05)], ids=["ed", "ps"]
)
def test_a_source_without_a_row_is_not_waited_for_once_it_has_ended(close: Any) -> None:
    alone, _ = ran(close, FIRST, FIRST.slice(0, 0))
    _, closing = ran(close, FIRST, EMPTY)
    assert total(closing).windows >= 195
    assert alone


def test_a_silent_source_with_idle_is_waited_for_no_longer_than_that() -> None:
    late = events(2, start_ms=15_000, key=1)
    _, closing = ran(sw.closing.event_driven(), FIRST, late, speed=1.0, idle="1s")
    assert total(closing).windows >= 190


@pytest.mark.parametrize(
    "close", [sw.closing.event_driven(), sw.closing.probslack(0.05)], ids=["ed", "ps"]
)
def test_without_arrivals_a_late_start_is_waited_for_by_the_clock(close: Any) -> None:
    """The second source's input is a history of times that begin three seconds later."""
    second = SECOND.filter(pa.compute.greater_equal(SECOND["ts"], LATE_START * MS))
    _, closing = ran(close, FIRST, second, arrival=False, speed=2.0)
    assert total(closing).missed <= 0.05 * total(closing).windows

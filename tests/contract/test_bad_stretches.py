"""A stretch of rows that cannot be used holds no slot: each piece of it is a slice of work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.foresight.observed.some_rows import SeenTimes, SomeRows
from slackwater.runtime.foresight.observed.source_times import source_times
from slackwater.runtime.model import END_NS, NS_PER_SECOND
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.sources.spec import END_OF_INPUT, BadRows, SourceSpec, traits_of
from tests.support.hosts import Slots
from tests.support.sources import drain, machine, take, times

SCHEMA = pa.schema({"t": pa.timestamp("ns"), "n": pa.int64()})
MOST_POLLS = 5_000
"""An input that is polled so often without a word of the test's has held its slot."""
KINDS = ["unreadable", "no time"]


WATCH: dict[str, Callable[[int], None]] = {"polled": lambda _: None}
"""Is called at each poll, with how many there were: a run has a copy of its input."""


def bad(kind: str, first: int, rows: int) -> pa.RecordBatch | BadRows:
    """Return rows that cannot be used, numbered from `first`."""
    numbers = range(first, first + rows)
    if kind == "no time":
        return pa.record_batch([pa.nulls(rows, SCHEMA[0].type), pa.array(numbers)], schema=SCHEMA)
    told = [{"file": "f", "line": n, "reason": "no row", "text": str(n)} for n in numbers]
    return BadRows(pa.RecordBatch.from_pylist(told))


def good(*seconds: int) -> pa.RecordBatch:
    at = pa.array([second * NS_PER_SECOND for second in seconds]).cast(SCHEMA[0].type)
    return pa.record_batch([at, pa.array(seconds)], schema=SCHEMA)


class Pieces:
    """An input of these pieces, and then of bad ones, if it has no end."""

    is_history: ClassVar[bool] = True
    reads_inline: ClassVar[bool] = True

    def __init__(self, pieces: list[Any], on_bad: str, endless: str | None = None) -> None:
        self.pieces, self.on_bad, self.endless = pieces, on_bad, endless
        self.polls = 0

    def describe(self) -> str:
        return "pieces"

    def schema(self) -> pa.Schema:
        return SCHEMA

    def open(self) -> Any:
        return Reader(self)


class Reader:
    def __init__(self, given: Pieces) -> None:
        self._given, self._at = given, 0

    def poll(self) -> Any:
        given, at = self._given, self._at
        self._at += 1
        given.polls += 1
        WATCH["polled"](given.polls)
        assert given.polls < MOST_POLLS, "the slot was held"
        if at < len(given.pieces):
            return given.pieces[at]
        return END_OF_INPUT if given.endless is None else bad(given.endless, at, 2)

    def close(self) -> None:
        """Nothing is open."""


def flow_of(given: Pieces, *, speed: float | None = None) -> sw.Dataflow:
    flow = sw.Dataflow("stretch")
    rows = flow.source("s", given, event_time="t", on_bad=given.on_bad, speed=speed)
    rows.sink("out", sw.collect_sink())
    if given.on_bad == "divert":
        rows.diverted().select("row", at=sw.event_time()).sink("bad", sw.collect_sink())
    return flow


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on_bad", ["skip", "divert"])
@pytest.mark.parametrize("speed", [None, 1.0])
def test_one_take_reads_one_piece_of_bad_rows(kind: str, on_bad: str, speed: float | None) -> None:
    given = Pieces([bad(kind, at, 2) for at in range(0, 20, 2)] + [good(100)], on_bad)
    source = machine(given, on_bad=on_bad, speed=speed)
    most_diverted = 0
    while not source.is_over:
        before = given.polls
        work = source.work(10**12, max_rows=END_NS)
        assert given.polls <= before + 2, "one piece, or the last one and the end"
        most_diverted = max(most_diverted, len(work.diverted))
    counted = source.bad_times + source.unreadable + source.diverted
    assert (counted, source.rows_in, source.rows_out) == (20, 21, 1)
    assert most_diverted == (2 if on_bad == "divert" else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_piece_of_many_bad_rows_is_kept_in_parts(kind: str) -> None:
    given = Pieces([bad(kind, 0, 200_000), good(100)], "divert")
    source, each = machine(given, on_bad="divert"), []
    while not source.is_over:
        each.append(len(source.work(1, max_rows=END_NS).diverted))
    assert sum(each) == source.diverted == 200_000
    assert max(each) <= 65_536


def stopped_simulated(given: Pieces, speed: float | None) -> Any:
    with sw.Simulation() as nodes:
        job = nodes.submit(flow_of(given, speed=speed))
        WATCH["polled"] = lambda polls: job.stop() if polls == 20 else None
        try:
            return job.wait()
        finally:
            WATCH["polled"] = lambda _: None


def stopped_in_real_time(given: Pieces, speed: float | None) -> Any:
    outcome = Slots().run(flow_of(given, speed=speed), stop_when=lambda: given.polls > 20)
    assert outcome.error is None
    return outcome.report


@pytest.mark.parametrize("host", [stopped_simulated, stopped_in_real_time])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on_bad", ["skip", "divert"])
@pytest.mark.parametrize("speed", [None, 1.0])
def test_a_job_whose_rows_are_all_bad_is_stopped_at_once(
    host: Callable[[Pieces, float | None], Any], kind: str, on_bad: str, speed: float | None
) -> None:
    report = host(Pieces([good(1)], on_bad, endless=kind), speed)
    assert report.state == "stopped"
    assert report.ledger.is_balanced


def ran(given: Pieces, speed: float | None) -> dict[str, Any]:
    with sw.Simulation() as nodes:
        job = nodes.submit(flow_of(given, speed=speed))
        report = job.wait()
        assert report.ledger.is_balanced
        counts = report.ledger.counts.of_job()
        told = {name: counts[name] for name in ("bad_time", "unreadable", "diverted")}
        sinks = ["out", "bad"] if given.on_bad == "divert" else ["out"]
        return {**told, **{name: job.result(name).to_pylist() for name in sinks}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on_bad", ["skip", "divert"])
@pytest.mark.parametrize("speed", [None, 1.0])
def test_no_cut_of_a_stretch_changes_a_result(kind: str, on_bad: str, speed: float | None) -> None:
    first: dict[str, Any] | None = None
    for size in (1, 7, 60):
        stretch = [bad(kind, at, min(size, 60 - at)) for at in range(0, 60, size)]
        given = Pieces([good(1, 2), *stretch, good(3), *stretch, good(4)], on_bad)
        result = ran(given, speed)
        first = first or result
        assert result == first, f"pieces of {size}"
    assert first is not None
    assert [row["n"] for row in first["out"]] == [1, 2, 3, 4]
    assert first["bad_time"] + first["unreadable"] + first["diverted"] == 120
    if on_bad == "divert":
        assert [row["at"] // NS_PER_SECOND for row in first["bad"]] == [2] * 60 + [3] * 60


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on_bad", ["skip", "divert"])
def test_a_restart_within_a_stretch_loses_nothing_and_counts_nothing_twice(
    kind: str, on_bad: str
) -> None:
    pieces = [good(1), bad(kind, 0, 20_000), bad(kind, 20_000, 3), good(2), bad(kind, 5, 1)]
    for takes in range(1, 6):
        source = machine(Pieces(pieces, on_bad), on_bad=on_bad)
        before = [take(source, 1) for _ in range(takes)]
        later = machine(Pieces(pieces, on_bad), on_bad=on_bad)
        restore(later, save(source))
        rest = drain(later)
        later.take_diverted(1)
        found = times([one for one in before if one is not None] + rest)
        assert found == [NS_PER_SECOND, 2 * NS_PER_SECOND]
        assert (later.bad_times + later.unreadable + later.diverted, later.rows_in) == (
            20_004,
            20_006,
        )


class InThread(Pieces):
    """A custom input, read in a thread in real time."""

    reads_inline = False


@pytest.mark.parametrize("log", [0, 10_000])
@pytest.mark.parametrize("on_bad", ["skip", "divert"])
def test_records_of_a_custom_input_are_diverted_in_real_time_too(on_bad: str, log: int) -> None:
    given = InThread([good(1), bad("unreadable", 0, 3), good(2)], on_bad)
    limits = sw.Limits(log=log) if log else None
    outcome = Slots(limits).run(flow_of(given))
    assert outcome.error is None
    counts = outcome.report.ledger.counts.of_job()
    expected = (0, 3) if on_bad == "divert" else (3, 0)
    assert (counts["unreadable"], counts["diverted"]) == expected
    assert outcome.report.ledger.is_balanced


@pytest.mark.parametrize("on_bad", ["skip", "divert"])
def test_a_prediction_reads_on_after_a_stretch_and_not_for_ever(on_bad: str) -> None:
    stretch = [bad("unreadable", at, 2) for at in range(0, 20, 2)]
    stages = plan_stages(flow_of(Pieces([*stretch, good(1, 2)], on_bad), speed=1.0).graph)
    times, _ = source_times(stages, 100, now_s=lambda: 0.0)
    assert len(times["s"].event_s) == 2
    given = Pieces([], on_bad, endless="unreadable")
    stages = plan_stages(flow_of(given, speed=1.0).graph)
    times, _ = source_times(stages, 100, now_s=lambda: 0.0)
    assert len(times["s"].event_s) == 0


def test_an_input_around_another_says_whether_records_are_diverted() -> None:
    for on_bad in ("skip", "divert"):
        given = Pieces([], on_bad)
        synced = sw.clocks.synced(given, server="127.0.0.1:7600", key="key")
        some = SomeRows("s", given, ((0, 1),), SeenTimes(SourceSpec(input=given, event_time="t")))
        assert traits_of(synced).diverts == traits_of(some).diverts == (on_bad == "divert")


def test_rows_that_are_held_do_not_leave_as_if_the_input_were_silent() -> None:
    settings: dict[str, Any] = {
        "out_of_order": "sort",
        "disorder_ns": 10 * NS_PER_SECOND,
        "idle_ns": 10**6,
        "on_bad": "skip",
    }

    class Live(Pieces):
        is_history = False

    given = Live([good(11), bad("unreadable", 0, 1), bad("no time", 0, 1), good(10)], "skip")
    source = machine(given, **settings)
    found = [take(source, now) for now in (0, 2 * 10**6, 4 * 10**6)]
    assert times([one for one in found if one is not None]) == []
    assert times(drain(source, now_ns=6 * 10**6)) == [10 * NS_PER_SECOND, 11 * NS_PER_SECOND]
    assert source.late_dropped == 0

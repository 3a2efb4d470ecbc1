"""What sources tell of arrivals, whatever puts their rows in order: it is true, and all they know.

Every row that arrived before the told time has been handed over. How the input is cut, when rows
are taken, at what pace, and whether the source was restored in between, shows in no row.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.ingest import memory
from slackwater.runtime.errors import OrderError
from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import PLACE_BITS, START_NS, Message
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.schema import inside_schema
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.order.aq_k_slack import aq_k_slack
from slackwater.runtime.order.k_slack import k_slack, mp_k_slack
from slackwater.runtime.order.ldop import ldop
from slackwater.runtime.order.sequence import by_sequence
from slackwater.runtime.schedule.source_node import SourceNode
from slackwater.runtime.sources.arrivals import ArrivalTeller
from slackwater.runtime.sources.clock_columns import clock_columns
from slackwater.runtime.sources.spec import SourceSpec
from tests.support.readers import JitterInput
from tests.support.reorders import Widening
from tests.support.sources import next_due_ns, take

MS = 1_000_000
EVERY_NS = 5 * MS
RANK = 3
MANY_TAKES = 4_000
"""Far more than 40 rows need: they are due within a second, and time goes on by 15 ms a take."""
COUNTS = ("late", "late_dropped", "duplicates", "given_up", "renumbered")

policies = st.one_of(
    st.builds(
        by_sequence,
        timeout=st.sampled_from([2 * MS, 20 * MS, 90 * MS]),
        late=st.sampled_from(["drop", "pass"]),
        restart=st.sampled_from(["first", "added"]),
        wraps=st.sampled_from([None, 5]),
        farthest=st.just(12),
        merge=st.booleans(),
        silent=st.sampled_from([None, 15 * MS, 300 * MS]),
    ),
    st.builds(k_slack, st.sampled_from([3 * MS, 25 * MS]), late=st.sampled_from(["drop", "pass"])),
    st.builds(mp_k_slack, late=st.sampled_from(["drop", "pass"])),
    st.builds(
        aq_k_slack,
        window=st.just(20 * MS),
        coverage=st.just(0.8),
        gains=st.just((0.3, 0.1)),
        late=st.sampled_from(["drop", "pass"]),
    ),
    st.builds(ldop, window=st.just(4 * MS), late=st.sampled_from(["drop", "pass"])),
    st.builds(Widening, st.just(5 * MS)),
)


@dataclass
class Case:
    """Rows as they came, and the settings of their source."""

    table: pa.Table
    settings: dict[str, Any]
    seed: int

    def machine(self, seed: int, speed: float | None) -> SourceNode:
        given_ = JitterInput(memory.table(self.table, batch_rows=9), seed)
        spec = SourceSpec(
            input=given_,
            event_time="t",
            time_unit="ns",
            arrival="a",
            speed=speed,
            **self.settings,
        )
        return SourceNode(
            "s",
            spec,
            inside_schema(given_.schema()),
            writer_id=RANK,
            start_ns=100 * MS,
            needed=frozenset({"row"}),
            teller=ArrivalTeller(EVERY_NS, rank=RANK, speed=speed),
        )

    @property
    def arrivals(self) -> list[int]:
        """When each row arrived; one that runs back counts as the newest before it."""
        newest_ns, found = START_NS, []
        for at in self.table["a"].to_pylist():
            newest_ns = max(newest_ns, at)
            found.append(newest_ns)
        return found

    @property
    def is_numbered(self) -> bool:
        return "sequence" in self.settings

    @property
    def keeps_its_word(self) -> bool:
        """Whether each row is in its place: not where late ones go on, or silent writers speak."""
        writer = self.settings["writer"] is not None
        waits = "idle_ns" not in self.settings and not self.is_numbered
        policy = self.settings["out_of_order"]
        is_merged = self.is_numbered and policy.merge
        return not getattr(policy, "passes_late", False) and (waits or is_merged or not writer)


steps = st.tuples(
    st.integers(0, 12),  # ms since the event before
    st.sampled_from([0, 0, 0, 1, 6, 20, 70]),  # its delay
    st.sampled_from("aab"),
    st.sampled_from(["", "", "", "", "", "", "lost", "twice", "restarts", "ahead", "back"]),
    st.integers(-4, 4),  # how far its clock is off
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    out_of_order = draw(st.one_of(st.sampled_from(["error", "late", "sort"]), policies))
    settings: dict[str, Any] = {
        "out_of_order": out_of_order,
        "writer": draw(st.sampled_from([None, "w"])),
        "max_rows": draw(st.sampled_from([3, 1_000])),
    }
    if isinstance(out_of_order, str):
        settings["disorder_ns"] = draw(st.sampled_from([1, 15, 120])) * MS
    if hasattr(out_of_order, "farthest"):
        settings["sequence"] = "n"
    else:
        if draw(st.booleans()):
            settings["ahead_ns"] = 10 * MS
        if draw(st.booleans()):
            settings["promise"] = col("p")
        # Rows that are sorted within a disorder leave by the clock in silence: there cuts show.
        if settings["writer"] is not None and out_of_order != "sort" and draw(st.booleans()):
            settings["idle_ns"] = 30 * MS
    if draw(st.booleans()):
        settings["clock"] = clock_columns("off", unit="ns")
    return Case(table_of(draw(st.lists(steps, max_size=40))), settings, draw(st.integers(0, 999)))


def table_of(events: list[tuple[int, int, str, str, int]]) -> pa.Table:
    """Return the rows in the order in which they came."""
    came, now, numbers = [], 0, dict.fromkeys("ab", 28)
    for gap, delay, writer, fate, off in events:
        now += gap
        numbers[writer] = 0 if fate == "restarts" else numbers[writer] + 1
        happened = now + (60 if fate == "ahead" else 0)
        for copy in range({"lost": 0, "twice": 2}.get(fate, 1)):
            at = now + delay + 9 * copy
            arrived = at - (5 if fate == "back" else 0)
            came.append((at, arrived, happened, writer, numbers[writer], off))
    came.sort(key=lambda one: one[0])
    least, known = 10**9, []
    for one in reversed(came):
        least = min(least, one[2])
        known.append(least)
    columns = [list(column) for column in zip(*came, strict=True)] if came else [[]] * 6
    _, arrived, happened, writers, number, off = columns
    return pa.table(
        {
            "t": ns([time - o for time, o in zip(happened, off, strict=True)]),
            "a": ns(arrived),
            "w": pa.array(writers, pa.string()),
            "n": pa.array([one % 32 for one in number], pa.int64()),
            "p": ns([time - o for time, o in zip(known[::-1], off, strict=True)]),
            "off": ns(off),
            "row": pa.array(range(len(came)), pa.int32()),
        }
    )


def ns(times_ms: list[int]) -> pa.Array:
    return pa.array([one * MS for one in times_ms], pa.int64())


@dataclass
class Run:
    """What left a source, and what it told, message by message."""

    rows: list[int] = field(default_factory=list)
    arrivals: dict[int, int] = field(default_factory=dict)
    told_ns: int = START_NS
    looks: list[tuple[int, int]] = field(default_factory=list)
    """Where all that was let go has been handed over: rows in, and what was told by then."""
    promise_ns: int = START_NS
    refused: bool = False
    counts: dict[str, int] = field(default_factory=dict)


def drive(case: Case, seed: int, speed: float | None) -> Run:
    """Take at random times and sizes; go on from a snapshot now and then."""
    chance, now = Random(seed), 0  # noqa: S311 - jitter, not a secret
    source, run = case.machine(seed, speed), Run()
    try:
        for _ in range(MANY_TAKES):
            most = chance.choice([1, 2, 7, None])
            now += chance.choice([0, 0, 1, 9, 60]) * MS
            due = next_due_ns(source, now)
            message = take(source, now, max_rows=most)
            if message is not None:
                assert due is None or due <= now or message.batch is None
                note(case, run, source, message, now)
                limit = min(most or 10_000, case.settings["max_rows"])
                # Else some may have been let go and be left over, or have no time yet. Before its
                # first row leaves a source tells nothing, so that windows wait for it.
                if run.rows and message.rows < limit and not source.early_held:
                    run.looks.append((source.rows_in, run.told_ns))
                if message.progress.is_end:
                    break
            if chance.random() < 0.1:
                state = pickle.dumps(to_plain(save(source)))
                source = case.machine(chance.randrange(2**32), speed)
                restore(source, from_plain(pickle.loads(state)))  # noqa: S301 - our own
        else:
            pytest.fail("the source never ends")
    except OrderError:
        run.refused = True
    run.counts = {word: getattr(source, word) for word in COUNTS}
    return run


def note(case: Case, run: Run, source: SourceNode, message: Message, now: int) -> None:
    """Keep what a message has, and check it beside those before."""
    if message.batch is not None:
        assert message.batch.arrivals is not None
        rows = message.batch.columns["row"].tolist()
        arrivals, places = message.batch.arrivals.T.tolist()
        assert min(arrivals) >= run.told_ns, "a row that had been told to be handed over"
        assert arrivals == sorted(arrivals)
        left = len(run.rows)
        assert places == [left + n + (RANK << PLACE_BITS) for n in range(len(rows))]
        run.rows += rows
        run.arrivals |= dict(zip(rows, arrivals, strict=True))
        assert int(message.batch.stimulus_time_ns.max()) <= now
        if case.keeps_its_word:
            assert int(message.batch.event_time_ns.min()) >= run.promise_ns
    assert message.progress.promise_ns >= run.promise_ns
    run.promise_ns = message.progress.promise_ns
    if message.progress.arrived is not None:
        assert message.progress.arrived.ns > run.told_ns
        assert message.progress.arrived.stimulus_ns <= now
        run.told_ns = message.progress.arrived.ns
    assert source.rows_out == len(run.rows)
    accounted = source.rows_out + source.late_dropped + source.duplicates + source.held
    assert source.rows_in == accounted
    assert source.held >= 0


@given(cases(), st.sampled_from([None, 1.0, 2.5]))
def test_told_times_are_true_and_all_that_is_known_and_cuts_show_in_no_row(
    case: Case, speed: float | None
) -> None:
    run = drive(case, case.seed, speed)
    check_told(case, run)
    again = drive(case, case.seed + 1, None if speed else 0.7)
    assert again.rows == run.rows
    assert again.refused == run.refused
    assert again.arrivals == run.arrivals
    if run.refused:
        return
    assert again.counts == run.counts
    last_ns = max(case.arrivals, default=START_NS)
    assert again.told_ns == run.told_ns
    assert run.told_ns in (last_ns, last_ns + 1)  # what waits for numbers leaves behind all else
    assert len(set(run.rows)) == len(run.rows)
    left_out = run.counts["late_dropped"] + run.counts["duplicates"]
    assert len(run.rows) + left_out == len(case.table)


def check_told(case: Case, run: Run) -> None:
    """Check that rows arrive when they came or later, and that times told keep up with them."""
    arrivals = case.arrivals
    policy = case.settings["out_of_order"]
    is_held = "ahead_ns" in case.settings or policy not in ("error", "late")
    for row, at in run.arrivals.items():
        assert at >= arrivals[row]
        assert is_held or at == arrivals[row]
    for rows_in, told_ns in run.looks:
        assert not rows_in or told_ns >= arrivals[rows_in - 1]

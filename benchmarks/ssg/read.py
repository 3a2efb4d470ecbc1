"""What a read costs: Slack-ScaleGate, ready-only and with a slack, beside a plain K-slack buffer.

[ssg] Fig. 8: two writers of 20,000 events each, 1-8 readers that do nothing but read. Batches of
one event, or of 128, arrive in the order of their times, save that writer 1 is held up for an
eighth of the time, twice as long as the slack: so some events leave as slack-ready, others late.
After every two batches each reader reads until there is nothing, event by event or all at once.
"""

from __future__ import annotations

import gc
import heapq
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from benchmarks.engine.merge import GAP_NS, Streams, draw
from benchmarks.frame import Claim, Options, Result, Spread, check
from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    GateRead,
    Int64Array,
    Progress,
    ReleaseRule,
    concat_batches,
)

WRITERS, EVENTS = 2, 20_000  # of each writer, as in the paper
PERIOD, STALL, SLACK = 128, 16, 8  # in mean lengths of a batch
NAMES = ("ready-only", "with a slack", "K-slack")


class Buffer(Protocol):
    """What is measured. A `SlackGate` is one."""

    def insert(self, writer: int, batch: Batch, progress: Progress) -> None:
        """Take events of one writer."""

    def read(self, reader: int, *, limit: int | None) -> GateRead | Batch | None:
        """Return the events that this reader may have, or about `limit` of them; None: nothing."""


class KSlack:
    """Plain K-slack: an event leaves once one more than K newer has come. A buffer a reader.

    One event at a time a heap, for batches a sorted array. It knows no writers.
    Source: [ssg] §1 and §6, after C. Mutschler and M. Philippsen (IPDPS 2013).
    """

    def __init__(self, readers: int, k_ns: int) -> None:
        self._k_ns = k_ns
        self._newest_ns = START_NS
        self._added = 0
        self._ended: set[int] = set()
        self._heaps: list[list[tuple[int, int, Batch]]] = [[] for _ in range(readers)]
        self._sorted: list[list[Batch]] = [[] for _ in range(readers)]

    def insert(self, writer: int, batch: Batch, progress: Progress) -> None:
        """Take events; of promises only the ends count."""
        self._newest_ns = max(self._newest_ns, batch.event_time_ns.item(-1))
        if progress.is_end:
            self._ended.add(writer)
            if len(self._ended) == WRITERS:
                self._newest_ns = END_NS
        self._added += 1
        if len(batch) == 1:
            entry = (batch.event_time_ns.item(0), self._added, batch)
            for heap in self._heaps:
                heapq.heappush(heap, entry)
        else:
            for held in self._sorted:
                held.append(batch)

    def read(self, reader: int, *, limit: int | None) -> Batch | None:
        """Return the oldest event (`limit` 1) or all events that may leave."""
        bound_ns = self._newest_ns - self._k_ns
        if limit == 1:
            heap = self._heaps[reader]
            return heapq.heappop(heap)[2] if heap and heap[0][0] < bound_ns else None
        held = self._sorted[reader]
        if not held:
            return None
        if len(held) > 1:
            merged = concat_batches(held)
            held[:] = [merged.take(merged.event_time_ns.argsort(kind="stable"))]
        merged = held[0]
        count = int(merged.event_time_ns.searchsorted(bound_ns))
        if not count:
            return None
        held[:] = [merged.slice(count, len(merged))] if count < len(merged) else []
        return merged.slice(0, count)


class Arrival(NamedTuple):
    """A batch as it reaches the buffer."""

    at_ns: int
    writer: int
    batch: Batch
    promise_ns: int


class Costs(NamedTuple):
    """What one run took, per event that a reader read and per event inserted."""

    read_us: float
    insert_us: float


def run(options: Options) -> Result:
    """Measure 1 … 8 readers, singly and in batches of 128."""
    events = EVENTS // 8 if options.quick else EVENTS
    repetitions_of = {1: 3 if options.quick else 5, 128: 9 if options.quick else 25}
    readers_of = {1: (1, 8) if options.quick else (1, 2, 4, 8), 128: (1, 2, 4, 8)}
    rng = np.random.default_rng(options.seed)
    result = Result(
        f"{WRITERS} writers × {EVENTS:,} events ({events:,} singly), {repetitions_of[1]} "
        f"repetitions singly, {repetitions_of[128]} in batches, one to warm up, one core",
        ["batch", "readers", *(f"{name}, µs a read event" for name in NAMES), "slack / ready-only"],
    )
    for batch, numbers in readers_of.items():
        streams = draw(rng, WRITERS, events if batch == 1 else EVENTS)
        arrivals = arrive(streams, batch)
        reads: dict[str, list[float]] = {name: [] for name in NAMES}  # {name: medians by readers}
        ratios = []
        for readers in numbers:
            runs = _interleaved(streams, arrivals, batch, readers, repetitions_of[batch])
            spreads = {name: Spread.of([one.read_us for one in runs[name]]) for name in NAMES}
            inserts = {name: Spread.of([one.insert_us for one in runs[name]]) for name in NAMES}
            pairs = zip(runs["with a slack"], runs["ready-only"], strict=True)
            ratios.append(
                statistics.median(slack.read_us / ready.read_us for slack, ready in pairs)
            )
            for name in NAMES:
                reads[name].append(spreads[name].median)
            result.rows.append([batch, readers, *spreads.values(), ratios[-1]])
            result.figures[f"batch {batch}, {readers} readers"] = {
                "read_us": spreads,
                "insert_us": inserts,
                "slack_over_ready_only": ratios[-1],
            }
        bound = 10 if batch == 1 else 0.5
        what = "singly" if batch == 1 else f"batches of {batch}"
        worst = max(reads["ready-only"] + reads["with a slack"])
        result.claims.append(Claim(f"{what}: µs a read event, of both gates", worst, "<=", bound))
        result.claims.append(Claim(f"{what}: slack / ready-only", max(ratios), "<=", 1.3))
    result.notes = [
        "a gate makes a batch for every read, the heap of K-slack hands over an object that it "
        "has: singly it is quicker, in batches it is not",
        "claims are on the number of readers that is worst for them; a ratio is the median of "
        "those of runs made in turns",
        "paper, Fig. 8: under 2 µs in Java with up to 8 readers, one thread each, lock-free; here "
        "readers take turns in one thread, so no figure holds what threads would wait for each "
        "other",
        "order and completeness of every reader were checked in every run",
    ]
    return result


def arrive(streams: Streams, batch: int) -> list[Arrival]:
    """Return the batches as they arrive: in the order of their last times; writer 1 has stalls."""
    span_ns = batch * GAP_NS
    arrivals = []
    for writer, times in enumerate(streams.times_ns):
        for start in range(0, len(times), batch):
            own = times[start : start + batch]
            at_ns = newest_ns = own.item(-1)
            phase_ns = at_ns % (PERIOD * span_ns)
            if writer == 1 and phase_ns >= (PERIOD - STALL) * span_ns:
                at_ns += PERIOD * span_ns - phase_ns
            columns = {"number": streams.numbers[writer, start : start + batch]}
            promise_ns = END_NS if start + batch >= len(times) else newest_ns
            row = Batch(
                event_time_ns=own,
                stimulus_time_ns=np.zeros(len(own), dtype=np.int64),
                columns=dict(columns),
            )
            arrivals.append(Arrival(at_ns, writer, row, promise_ns))
    return sorted(arrivals, key=lambda arrival: arrival.at_ns)  # stable: a writer's stay in order


def largest_lag_ns(arrivals: list[Arrival]) -> int:
    """Return how far behind the newest event one has come: the K by which K-slack orders all."""
    newest_ns, lag_ns = START_NS, 0
    for arrival in arrivals:
        times = arrival.batch.event_time_ns
        newest_ns = max(newest_ns, times.item(-1))
        lag_ns = max(lag_ns, newest_ns - times.item(0))
    return lag_ns


def _interleaved(
    streams: Streams, arrivals: list[Arrival], batch: int, readers: int, repetitions: int
) -> dict[str, list[Costs]]:
    """Return the costs of each structure, run in turns: the machine's speed drifts."""
    writers = [Writer(0, rank) for rank in range(WRITERS)]
    slack, k_ns = ReleaseRule.slack(SLACK * batch * GAP_NS), largest_lag_ns(arrivals)
    make: dict[str, Callable[[], Buffer]] = {
        "ready-only": partial(SlackGate, writers, readers=readers),
        "with a slack": partial(SlackGate, writers, readers=readers, rule=slack),
        "K-slack": partial(KSlack, readers, k_ns),
    }
    costs: dict[str, list[Costs]] = {name: [] for name in NAMES}
    gc.collect()
    gc.freeze()  # as a slot does: what exists now is not looked at again
    for turn in range(repetitions + 1):
        for name in NAMES:
            found = once(make[name](), streams, arrivals, readers, limit=1 if batch == 1 else None)
            if turn:
                costs[name].append(found)
    gc.unfreeze()
    return costs


def once(
    buffer: Buffer, streams: Streams, arrivals: list[Arrival], readers: int, *, limit: int | None
) -> Costs:
    """Insert and read everything, check it, and return what inserts and reads took."""
    read, clock = buffer.read, time.perf_counter
    on_time: list[list[int]] = [[] for _ in range(readers)]
    late: list[list[int]] = [[] for _ in range(readers)]
    read_s = insert_s = 0.0
    for start in range(0, len(arrivals), WRITERS):
        began_s = clock()
        for _, writer, batch, promise_ns in arrivals[start : start + WRITERS]:
            buffer.insert(writer, batch, Progress.after(batch, promise_ns))
        insert_s += clock() - began_s
        for reader in range(readers):
            some = []
            began_s = clock()
            while (one := read(reader, limit=limit)) is not None:
                some.append(one)
            read_s += clock() - began_s
            for one in some:
                keep(one, on_time[reader], late[reader])
    check_all(buffer, streams, on_time, late)
    return Costs(1e6 * read_s / readers / streams.events, 1e6 * insert_s / streams.events)


def keep(one: GateRead | Batch, on_time: list[int], late: list[int]) -> None:
    """Note the numbers of the events of one read."""
    if isinstance(one, Batch):
        on_time += _numbers(one)
        return
    for batches, noted in ((one.late, late), (one.ports, on_time)):
        for batch in batches:
            if batch is not None:
                noted.extend(_numbers(batch))


def check_all(
    buffer: Buffer, streams: Streams, on_time: list[list[int]], late: list[list[int]]
) -> None:
    """Check that each reader had every event once, in the order that its buffer promises."""
    times = streams.times_ns.ravel()
    expected = times.argsort(kind="stable")  # ties: by writer, then in order
    places: Int64Array = np.empty_like(expected)
    places[expected] = np.arange(len(expected))
    for reader, (in_order, behind) in enumerate(zip(on_time, late, strict=True)):
        had = np.sort(np.asarray(in_order + behind, dtype=np.int64))
        check(np.array_equal(had, np.arange(len(times))), "a reader lost or repeated events")
        if not isinstance(buffer, SlackGate):
            check(bool((np.diff(times[in_order]) >= 0).all()), "K-slack's events are out of order")
            continue
        check(bool((np.diff(places[in_order]) > 0).all()), "the gate's events are out of order")
        counts = buffer.counts(reader)
        reaches = buffer.rule.slack_ns is not None
        check(counts.late == len(behind), "the gate counts other late events than it gave")
        check(bool(behind) == reaches, "events are late with a slack, and only then")
        check(bool(counts.slack_ready) == reaches, "the slack was not reached, or without one")


def _numbers(batch: Batch) -> list[int]:
    numbers: list[int] = np.asarray(batch.columns["number"]).tolist()
    return numbers

"""Slack-ScaleGate alone, in one process: how many events a second it merges, ready-only.

Each round every writer inserts a batch, then one read takes what is ready; or a read follows
every insert. A row has two times and one int64 column. Order and completeness are checked after
the clock has stopped.
"""

from __future__ import annotations

import gc
import time
from functools import partial
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from benchmarks.frame import Claim, Options, Result, Spread, check, repeated
from slackwater.runtime import model
from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.model import END_NS, Batch, Columns, Int64Array

GAP_NS = 1_000_000  # mean time between two events of a writer
Inserts = list[list[tuple[int, Batch, dict[str, Any]]]]  # rounds of (writer, batch, promise)


class Streams(NamedTuple):
    """Events of all writers: shape (writers, events), in event-time order each; made once."""

    times_ns: Int64Array
    numbers: Int64Array
    """Every event's own number: its place in `times_ns.ravel()`."""

    @property
    def events(self) -> int:
        """How many there are."""
        return self.times_ns.size


def run(options: Options) -> Result:
    """Measure batches of 1 … 8,192 from 2 writers, and of 128 from 1,500."""
    repetitions = 3 if options.quick else 7
    rng = np.random.default_rng(options.seed)
    result = Result(
        f"ready-only gate, {repetitions} repetitions after one to warm up, one core",
        ["writers", "batch", "events", "M events/s", "µs an event", "read after each insert, M/s"],
    )
    rates: dict[tuple[int, int], Spread] = {}
    limits: dict[int, Spread] = {}
    for writers, batch, events in _cases(quick=options.quick):
        streams = draw(rng, writers, events // writers // batch * batch)
        rounds = cut(streams, batch)
        spreads = [_rate(streams, rounds, repetitions, each=each) for each in (False, True)]
        rates[writers, batch] = spreads[0]
        size, micros = f"{streams.events:,}", 1 / spreads[0].median
        result.rows.append([f"{writers:,}", f"{batch:,}", size, spreads[0], micros, spreads[1]])
        limits[writers] = repeated(repetitions, partial(offline, streams))  # the largest stays
        result.figures[f"{writers} writers, batch {batch}"] = {
            "million_events_per_s": spreads[0],
            "us_per_event": micros,
            "read_after_each_insert_million_per_s": spreads[1],
        }
    for writers, limit in limits.items():
        micros = 1 / limit.median
        result.rows.append([f"{writers:,}", "all, offline np.argsort", "", limit, micros, ""])
        result.figures[f"{writers} writers, offline sort"] = {"million_events_per_s": limit}
    result.claims = [
        Claim("2 writers, batch 128: M events/s", rates[2, 128].median, ">=", 10),
        Claim("2 writers, batch 1,024: M events/s", rates[2, 1_024].median, ">=", 20),
        Claim("2 writers, batch 1: µs an event", 1 / rates[2, 1].median, "<=", 10),
        Claim("1,500 writers, batch 128: M events/s", rates[1_500, 128].median, ">=", 5),
    ]
    result.notes.append("order and completeness of every repetition were checked")
    return result


def _cases(*, quick: bool) -> list[tuple[int, int, int]]:
    """Return (writers, rows of a batch, events)."""
    scale = 1 if quick else 4
    few = [(2, 1, 50_000), (2, 16, 500_000), (2, 128, 1_000_000)]
    many = [(2, 1_024, 2_000_000), (2, 8_192, 2_000_000), (1_500, 128, 960_000)]
    return [(writers, batch, scale * events) for writers, batch, events in few + many]


def draw(rng: np.random.Generator, writers: int, events: int) -> Streams:
    """Return `events` events of each writer; times in microseconds, so that some tie."""
    gaps = rng.exponential(GAP_NS / 1_000, (writers, events)).astype(np.int64) * 1_000
    times = gaps.cumsum(axis=1)
    return Streams(times, np.arange(times.size).reshape(times.shape))


def cut(streams: Streams, batch: int) -> Inserts:
    """Return what is inserted: in each round a batch of each writer; the last promises the end."""
    stimuli = np.zeros(batch, dtype=np.int64)
    writers, events = streams.times_ns.shape
    rounds: Inserts = []
    for start in range(0, events, batch):
        stop = start + batch
        this = []
        for writer in range(writers):
            times = streams.times_ns[writer, start:stop]
            columns: Columns = {"number": streams.numbers[writer, start:stop]}
            rows = Batch(event_time_ns=times, stimulus_time_ns=stimuli, columns=columns)
            this.append((writer, rows, _promised(rows, is_end=stop == events)))
        rounds.append(this)
    return rounds


def _promised(rows: Batch, *, is_end: bool) -> dict[str, Any]:
    """Return the promise that comes with rows, as a message has it.

    `before-after` measures commits without `Progress`, too.
    """
    promise_ns = END_NS if is_end else int(rows.event_time_ns[-1])
    progress = getattr(model, "Progress", None)
    if progress is None:
        return {"promise_ns": promise_ns}
    return {"progress": progress.after(rows, promise_ns)}


def _rate(streams: Streams, rounds: Inserts, repetitions: int, *, each: bool) -> Spread:
    """Return million events a second."""
    gc.collect()
    gc.freeze()  # as a slot does: what exists now is not looked at again
    once(streams, rounds, each=each)
    spread = repeated(repetitions, lambda: streams.events / once(streams, rounds, each=each) / 1e6)
    gc.unfreeze()
    return spread


def once(streams: Streams, rounds: Inserts, *, each: bool) -> float:
    """Merge everything, check it, and return the seconds that merging took."""
    gate = SlackGate([Writer(0, rank) for rank in range(len(streams.times_ns))])
    insert = cast("Any", gate.insert)
    released = []
    began_s = time.perf_counter()
    for this in rounds:
        for writer, batch, promised in this:
            insert(writer, batch, **promised)
            if each:
                released.append(gate.read())
        if not each:
            released.append(gate.read())
    took_s = time.perf_counter() - began_s
    ports = [read.ports[0] for read in released if read is not None]
    merged = [batch for batch in ports if batch is not None]
    numbers = np.concatenate([batch.columns["number"] for batch in merged])
    times = np.concatenate([batch.event_time_ns for batch in merged])
    expected = streams.times_ns.ravel().argsort(kind="stable")  # ties: by writer, then in order
    check(np.array_equal(numbers, expected), "the gate's order differs from the stable sort")
    check(np.array_equal(times, streams.times_ns.ravel()[expected]), "the gate changed times")
    return took_s


def offline(streams: Streams) -> float:
    """Return million events a second of sorting them all at once, in NumPy: the limit.

    The quicker of two sorts: one finds sorted runs, the other uses the processor's vectors
    (and may turn ties round).
    """
    times, numbers = streams.times_ns.ravel(), streams.numbers.ravel()
    stimuli = np.zeros(len(times), dtype=np.int64)
    took_s = []
    kinds: tuple[Literal["stable", "quicksort"], ...] = ("stable", "quicksort")
    for kind in kinds:
        began_s = time.perf_counter()
        order = times.argsort(kind=kind)
        for column in (times, stimuli, numbers):
            column.take(order)
        took_s.append(time.perf_counter() - began_s)
    return streams.events / min(took_s) / 1e6

"""What the pattern operator takes for a query, alone in its process: reads in, matches out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.frame import Result, Spread, repeated
from benchmarks.patterns.queries import Asked
from slackwater.runtime.model import Batch, GateRead, Progress
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.registry.operators import make_operator

READ = 10_000
"""Rows of a read of the gate."""


@dataclass(frozen=True)
class Found:
    """What somebody found, and how quickly.

    Attributes:
        events: that were taken.
        rate: million events a second of CPU time.
        matches: how many; None: they were not counted.
    """

    events: int
    rate: Spread
    matches: int | None


def tell(result: Result, what: str, who: str, found: Found) -> None:
    """Add a row, and the figures of it."""
    matches = "" if found.matches is None else f"{found.matches:,}"
    result.rows.append([what, who, f"{found.events:,}", found.rate, matches])
    result.figures[f"{what}, {who}"] = {
        "events": found.events,
        "million_events_s": found.rate,
        "matches": found.matches,
    }


def million_a_second(asked: Asked, times: int) -> tuple[Spread, int]:
    """Return million events a second of CPU time, and how many matches."""
    step, reads = asked.step(), reads_of(asked.rows)
    matches: list[int] = []

    def once() -> float:
        operator = make_operator(step)
        seconds, found = spent(operator, reads)
        matches.append(found)
        return float(asked.rows.num_rows / seconds / 1e6)

    return repeated(times, once), matches[-1]


def reads_of(rows: pa.Table, size: int = READ) -> list[GateRead]:
    """Return rows as reads of a gate, of so many each."""
    columns = {name: rows[name].to_numpy() for name in rows.column_names}
    times = columns["time"].astype(np.int64)
    found = []
    for begin in range(0, len(times), size):
        part = slice(begin, begin + size)
        batch = Batch(
            event_time_ns=times[part],
            stimulus_time_ns=times[part],
            columns={name: one[part] for name, one in columns.items()},
        )
        at_ns = times[part].item(-1)
        found.append(GateRead([batch], [None], at_ns, Progress(at_ns, 0)))
    return found


def spent(operator: Operator, reads: Sequence[GateRead]) -> tuple[float, int]:
    """Return the CPU time in s, and the matches."""
    began, found = time.process_time(), 0
    for read in reads:
        batch = operator.work(read, 0).rows
        found += 0 if batch is None else len(batch)
    return time.process_time() - began, found

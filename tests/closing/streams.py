"""Small streams for closing policies, and what a policy makes of one, cut in any way."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from random import Random

import numpy as np

from slackwater.runtime.closing.policy import Closing, ClosingCounts, ClosingRun
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.state import restore, save

MS = 1_000_000
Row = tuple[int, int, int]
"""Type, event time, arrival."""


def drawn(chance: Random, *, types: int = 1, rows: int = 60, shuffled: bool = False) -> list[Row]:
    """Return rows in the order of arrival, types numbered as they appear, times in ticks of 1.

    All types have a row at the first tick. Those of a type are in order unless `shuffled`.
    """
    made = []
    for kind in range(types):
        at, last = 0, 9
        made.append((kind, at, last))
        for _ in range(rows // types - 1):
            at += chance.randint(3, 12) if chance.random() < 0.9 else chance.randint(0, 60)
            came = at + chance.randint(1, 9 if chance.random() < 0.9 else 30)
            last = max(came, 9 if shuffled else last)
            made.append((kind, at, last))
    made.sort(key=lambda row: (row[2], row[1]))
    numbers: dict[int, int] = {}
    return [(numbers.setdefault(kind, len(numbers)), at, came) for kind, at, came in made]


def columns(rows: list[Row], *, scale: int = 1) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return rows as `ClosingRun.observe` takes them."""
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1] * scale, table[:, 2] * scale


@dataclass
class Ran:
    """What came of a run: what `observe` said of each row; (end, closed at, chance); the counts."""

    told: list[int]
    closed: list[tuple[int, int, float]]
    counts: ClosingCounts

    @property
    def closed_at(self) -> dict[int, int]:
        """{end: when it closed}"""
        return {end: at for end, at, _ in self.closed}


def ran(
    policy: Closing, windows: WindowEnds, rows: list[Row], *, until: int, cut: Random | None = None
) -> Ran:
    """Run a policy over rows: at once; or cut at random, time passed between, and restored."""
    run = policy.begin(windows)
    told: list[int] = []
    start = 0
    while start < len(rows):
        stop = len(rows) if cut is None else min(start + cut.choice([1, 1, 2, 5, 20]), len(rows))
        told += run.observe(*columns(rows[start:stop])).tolist()
        if cut is not None:
            if stop < len(rows) and cut.random() < 0.5:
                run.pass_time(cut.randint(rows[stop - 1][2], rows[stop][2]))
            if cut.random() < 0.3:
                run = restored(policy, windows, run)
        start = stop
    run.pass_time(until)
    found = run.closings()
    chances = [-1.0 if np.isnan(one) else one for one in found.chance_missing.tolist()]
    return Ran(
        told,
        list(zip(found.end_ns.tolist(), found.closed_at_ns.tolist(), chances, strict=True)),
        run.counts(),
    )


def restored(policy: Closing, windows: WindowEnds, run: ClosingRun) -> ClosingRun:
    """Return a new run that goes on from another's snapshot."""
    other = policy.begin(windows)
    restore(other, pickle.loads(pickle.dumps(save(run))))  # noqa: S301 - our own
    return other


def missed(windows: WindowEnds, rows: list[Row], closed_at: dict[int, int]) -> set[int]:
    """Return the ends of closed windows of which a row came behind: what a policy has to count."""
    return {
        end
        for end, at in closed_at.items()
        for _, made, came in rows
        if end - windows.size_ns <= made < end and came > at
    }

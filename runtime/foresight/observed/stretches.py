"""Rows of a sample: stretches of one time, evenly over the input.

```
buses   ▓▓······▓▓······▓▓······▓▓     the same stretches of event time at every source,
loops   ▓▓▓▓····▓▓▓▓····▓▓▓▓····▓▓▓▓   each whole, so that joins and windows see neighbours
```

How long rows lag, and in what bursts they come, is read off all that lies between, too: that costs
no user's function (`source_times.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.foresight.gates import SourceTimes
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.foresight.sampled import SliceSeen, StageCost
from slackwater.runtime.model import NS_PER_SECOND

__all__ = ["Stretched", "stretched", "work_spread"]

MOST = 5
"""Stretches of a sample at most: each is to be long beside the times that the flow looks back."""

Rows = tuple[tuple[int, int], ...]
"""Rows of a source, by their numbers: (from, until) of each stretch, ascending."""


@dataclass(frozen=True, kw_only=True)
class Stretched:
    """Rows of a sample.

    Attributes:
        rows: {source: its rows}.
        from_s: when each stretch begins, by event time from the earliest row.
        lengths_s: how long each is; 0 of a sample without times.
        looked_s: over how much event time they are spread.
        keep_s: how far apart stretches are put, so that none sees the one before.
        slide_s: pauses are cut by multiples of this, so that windows end as they do.
    """

    rows: Mapping[str, Rows]
    from_s: Sequence[float] = (0.0,)
    lengths_s: Sequence[float] = (0.0,)
    looked_s: float = 0.0
    keep_s: float = 0.0
    slide_s: float = 0.0

    @property
    def count(self) -> int:
        """How many stretches there are."""
        return len(self.from_s)

    @property
    def covers_s(self) -> float:
        """Event time that the sample's rows are of."""
        return sum(self.lengths_s)

    def without_pauses(self, source: str, times_s: FloatArray) -> FloatArray:
        """Return event times of a source's sample as if its stretches followed each other.

        Args:
            source: which.
            times_s: shape (rows,), as they were read.
        """
        if len(self.from_s) == 1:
            return times_s
        shift_s = np.arange(len(self.from_s)) * 0.0
        for n in range(1, len(self.from_s)):
            until_s = self.from_s[n - 1] + self.lengths_s[n - 1]
            pause_s = self.from_s[n] - until_s - self.keep_s
            cut_s = max(pause_s, 0.0)
            if self.slide_s > 0:
                cut_s = np.floor(cut_s / self.slide_s) * self.slide_s
            shift_s[n] = shift_s[n - 1] + cut_s
        lengths = [until - begin for begin, until in self.rows[source]]
        return np.asarray(times_s - np.repeat(shift_s, lengths)[: len(times_s)])


def stretched(
    times: Mapping[str, SourceTimes], rows: int, *, reach_s: float, slide_s: float, is_whole: bool
) -> Stretched:
    """Return the rows of a sample, by what all sources' rows are like.

    Args:
        times: {source: what its rows are like}, as far as it was looked.
        rows: how many there are to be of each source, on average.
        reach_s: how far operators look back, seconds of event time.
        slide_s: the longest slide of a window; 0: none.
        is_whole: whether the sample is to be the first rows: numbers of rows may not be missing.
    """
    first = Stretched(rows=dict.fromkeys(times, ((0, rows),)))
    known = {name: one for name, one in times.items() if len(one.event_s)}
    if not known:
        return first
    newest_s = {name: np.maximum.accumulate(one.event_s) for name, one in known.items()}
    end_s = max(float(each[-1]) for each in newest_s.values())
    all_rows = sum(len(one.event_s) * one.stands_for for one in known.values())
    wanted = rows * len(known)
    covered_s = end_s * wanted / all_rows if all_rows > wanted else end_s
    whole = Stretched(rows=first.rows, lengths_s=(min(covered_s, end_s),), looked_s=end_s)
    count = int(min(MOST, covered_s // (2 * reach_s) if reach_s > 0 else MOST))
    if is_whole or count < 2 or all_rows <= 1.25 * wanted or covered_s <= 0:
        return whole
    # In the midst of as many parts of all rows: what the first ones are like is no fifth of all.
    together_s = np.concatenate(list(newest_s.values()))
    each = np.concatenate([np.full(len(newest_s[n]), known[n].stands_for) for n in known])
    order = np.argsort(together_s, kind="stable")
    middles, half = (np.arange(count) + 0.5) / count * all_rows, wanted / count / 2
    before = np.searchsorted(np.cumsum(each[order]), np.stack([middles - half, middles + half]))
    from_s, until_s = together_s[order][before]
    found = {
        name: _numbers(newest_s[name], times[name].stands_for, from_s, until_s) for name in known
    }
    found |= {name: ((0, rows),) for name in times if name not in known}
    taken = sum(until - begin for each in found.values() for begin, until in each)
    is_empty = any(each[-1][1] == each[0][0] for each in found.values())
    if is_empty or not wanted / 2 <= taken <= 2 * wanted:
        return whole  # a row that is far ahead of all others, or times that say little
    return Stretched(
        rows=found,
        from_s=tuple(from_s.tolist()),
        lengths_s=tuple((until_s - from_s).tolist()),
        looked_s=end_s,
        keep_s=reach_s,
        slide_s=slide_s,
    )


def _numbers(newest_s: FloatArray, each: float, from_s: FloatArray, until_s: FloatArray) -> Rows:
    """Return which rows come while the newest event time lies in each stretch."""
    begins = np.searchsorted(newest_s, from_s)
    ends = np.maximum(np.searchsorted(newest_s, until_s), begins)
    return tuple(
        (round(begin * each), round(end * each)) for begin, end in zip(begins, ends, strict=True)
    )


def work_spread(
    slices: Iterable[SliceSeen], part: Stretched, costs: Mapping[str, tuple[StageCost, StageCost]]
) -> float:
    """Return the standard error of a source row's cost, as a share.

    Parts of the sample differ by chance and as data drift. Stretches evenly over the input stand
    for what lies between; one from its start does not, so that the rest may be off by as much as
    its parts are from each other. A part is over as any source's is.

    Args:
        slices: all there were, in their order.
        part: the rows of the sample.
        costs: {stage: what its slices cost, and in full ones}: how often it was cut is no matter.
    """
    count = part.count if part.count > 1 else MOST
    read = dict.fromkeys(part.rows, 0)
    work_s, came = np.zeros(count), np.zeros(count)
    now, slices = 0, list(slices)
    ends = _ends(part, slices)
    for one in slices:
        if one.stage in read:
            number = int(np.searchsorted(ends[one.stage], read[one.stage], side="right"))
            now = max(now, min(number, count - 1))
            read[one.stage] += one.rows
            came[now] += one.rows
        if one.stage in costs and (one.rows or one.released):
            seen, full = costs[one.stage]
            share_s = one.rows * (full.row_s - seen.row_s)
            work_s[now] += max(one.took_ns / NS_PER_SECOND - seen.fixed_s, 0.0) + share_s
    each = work_s[came > 0] / came[came > 0]
    if len(each) < 2 or each.mean() <= 0:
        return 0.0
    unseen = max(1 - part.covers_s / part.looked_s, 0.0) if part.looked_s > 0 else 1.0
    own = 1 / len(each) + (unseen if part.count == 1 else 0.0)
    return float(each.std(ddof=1) / each.mean() * np.sqrt(own))


def _ends(part: Stretched, slices: Sequence[SliceSeen]) -> dict[str, FloatArray]:
    """Return by which row of each source each part of the sample ends."""
    if part.count > 1:
        return {name: np.cumsum([b - a for a, b in each]) for name, each in part.rows.items()}
    read = {name: sum(one.rows for one in slices if one.stage == name) for name in part.rows}
    return {name: rows * np.arange(1, MOST + 1) / MOST for name, rows in read.items()}

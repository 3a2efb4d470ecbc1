"""Rows of a sample: stretches of one time, evenly over the input.

```
buses   ▓▓······▓▓······▓▓······▓▓     the same stretches of event time at every source,
loops   ▓▓▓▓····▓▓▓▓····▓▓▓▓····▓▓▓▓   each whole, so that joins and windows see neighbours
```

Lags and bursts are also read from the rows between: that calls no user's function
(`source_times.py`).
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
"""Most stretches of a sample: each must be long beside the times that the flow looks back."""

Rows = tuple[tuple[int, int], ...]
"""Rows of a source, by their numbers: (from, until) of each stretch, ascending."""


@dataclass(frozen=True, kw_only=True)
class Stretched:
    """Rows of a sample.

    Attributes:
        rows: {source: its rows}.
        from_s: start of each stretch, in event time from the earliest row.
        lengths_s: length of each; 0 for a sample without times.
        looked_s: event time over which they are spread.
        keep_s: gap between stretches, so that no stretch sees the one before.
        slide_s: pauses are shortened by multiples of this, so that windows end at the same places.
    """

    rows: Mapping[str, Rows]
    from_s: Sequence[float] = (0.0,)
    lengths_s: Sequence[float] = (0.0,)
    looked_s: float = 0.0
    keep_s: float = 0.0
    slide_s: float = 0.0

    @property
    def count(self) -> int:
        """Number of stretches."""
        return len(self.from_s)

    @property
    def covers_s(self) -> float:
        """Event time of the sample's rows together."""
        return sum(self.lengths_s)

    def without_pauses(self, source: str, times_s: FloatArray) -> FloatArray:
        """Return event times of a source's sample without pauses between stretches.

        Args:
            source: name of the source.
            times_s: shape (rows,), the event times as read.
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
    """Return the rows of a sample, by the times of all sources' rows.

    Args:
        times: {source: times of the rows looked at}.
        rows: mean number of rows of each source.
        reach_s: longest look back of operators, seconds of event time.
        slide_s: the longest slide of a window; 0: there are no windows.
        is_whole: whether to take the first rows, since numbers of rows must not be missing.
    """
    first = Stretched(rows=dict.fromkeys(times, ((0, rows),)))
    known = {name: each for name, each in times.items() if len(each.event_s)}
    if not known:
        return first
    newest_s = {name: np.maximum.accumulate(each.event_s) for name, each in known.items()}
    end_s = max(float(each[-1]) for each in newest_s.values())
    all_rows = sum(len(each.event_s) * each.stands_for for each in known.values())
    wanted = rows * len(known)
    covered_s = end_s * wanted / all_rows if all_rows > wanted else end_s
    whole = Stretched(rows=first.rows, lengths_s=(min(covered_s, end_s),), looked_s=end_s)
    count = int(min(MOST, covered_s // (2 * reach_s) if reach_s > 0 else MOST))
    if is_whole or count < 2 or all_rows <= 1.25 * wanted or covered_s <= 0:
        return whole
    # A stretch is in the middle of its part of all rows: the first rows may be unlike the rest.
    together_s = np.concatenate(list(newest_s.values()))
    each = np.concatenate([np.full(len(newest_s[n]), known[n].stands_for) for n in known])
    order = np.argsort(together_s, kind="stable")
    middles, half = (np.arange(count) + 0.5) / count * all_rows, wanted / count / 2
    before = np.searchsorted(np.cumsum(each[order]), np.stack([middles - half, middles + half]))
    from_s, until_s = together_s[order][before]
    chosen = {
        name: _numbers(newest_s[name], times[name].stands_for, from_s, until_s) for name in known
    }
    chosen |= {name: ((0, rows),) for name in times if name not in known}
    total = sum(until - begin for each in chosen.values() for begin, until in each)
    is_empty = any(each[-1][1] == each[0][0] for each in chosen.values())
    if is_empty or not wanted / 2 <= total <= 2 * wanted:
        return whole  # a row is far ahead of all others, or event times are coarse
    return Stretched(
        rows=chosen,
        from_s=tuple(from_s.tolist()),
        lengths_s=tuple((until_s - from_s).tolist()),
        looked_s=end_s,
        keep_s=reach_s,
        slide_s=slide_s,
    )


def _numbers(newest_s: FloatArray, each: float, from_s: FloatArray, until_s: FloatArray) -> Rows:
    """Return the rows that arrive while the newest event time is in each stretch."""
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
    for the rows between. A single stretch from its start does not, so the rest may differ from it
    as much as its parts differ. A part ends when its rows of any source end.

    Args:
        slices: all slices, in their order.
        part: the rows of the sample.
        costs: {stage: its costs, and those in full slices}, so the number of slices has no effect.
    """
    count = part.count if part.count > 1 else MOST
    read = dict.fromkeys(part.rows, 0)
    work_s, came = np.zeros(count), np.zeros(count)
    now, slices = 0, list(slices)
    ends = _ends(part, slices)
    for each_slice in slices:
        stage, rows = each_slice.stage, each_slice.rows
        if stage in read:
            number = int(np.searchsorted(ends[stage], read[stage], side="right"))
            now = max(now, min(number, count - 1))
            read[stage] += rows
            came[now] += rows
        if stage in costs and (rows or each_slice.released):
            seen, full = costs[stage]
            share_s = rows * (full.row_s - seen.row_s)
            work_s[now] += max(each_slice.took_ns / NS_PER_SECOND - seen.fixed_s, 0.0) + share_s
    each = work_s[came > 0] / came[came > 0]
    if len(each) < 2 or each.mean() <= 0:
        return 0.0
    unseen = max(1 - part.covers_s / part.looked_s, 0.0) if part.looked_s > 0 else 1.0
    own = 1 / len(each) + (unseen if part.count == 1 else 0.0)
    return float(each.std(ddof=1) / each.mean() * np.sqrt(own))


def _ends(part: Stretched, slices: Sequence[SliceSeen]) -> dict[str, FloatArray]:
    """Return the last row of each part of the sample, for each source."""
    if part.count > 1:
        return {name: np.cumsum([b - a for a, b in each]) for name, each in part.rows.items()}
    read = {name: sum(s.rows for s in slices if s.stage == name) for name in part.rows}
    return {name: rows * np.arange(1, MOST + 1) / MOST for name, rows in read.items()}

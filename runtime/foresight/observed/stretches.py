"""Rows of a sample: stretches of one time, evenly over the input.

```
buses   ▓▓······▓▓······▓▓······▓▓     the same stretches of event time at every source,
loops   ▓▓▓▓····▓▓▓▓····▓▓▓▓····▓▓▓▓   each whole, so that joins and windows see neighbours
```

Lags and bursts are also read from the rows between: that calls no user's function
(`source_times.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.foresight.gates import SourceTimes
from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = ["MOST", "Stretched", "stretched"]

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

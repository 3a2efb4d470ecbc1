"""First rows of windows: windows without a row are counted apart.

```
rows, as they came   0: windows 3 4     1: 4 5     2: 9     3: 7 (out of order)
window               3  4  5  7  9      no row is in 6 and 8
its first row        0  0  1  3  2
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.closing.windows import Ranges, WindowEnds, merged, unfolded
from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.state import Fields

BEFORE = -1
"""The first row came before these."""


class FirstRows:
    """The windows that have had a row, of those that are open.

    Args:
        windows: which there are.
    """

    STATE = Fields("_known")

    def __init__(self, windows: WindowEnds) -> None:
        self._windows = windows
        self._known = Ranges()

    def add(self, event_time_ns: Int64Array, *, open_from: int) -> None:
        """Take rows, of which those of older windows say nothing."""
        low = np.maximum(self._windows.firsts_after(event_time_ns), open_from)
        self._known.add_all(*merged(low, self._windows.lasts_begun(event_time_ns)))

    def among(
        self, event_time_ns: Int64Array, first: int, last: int
    ) -> tuple[Int64Array, Int64Array]:
        """Return the windows first … last with a row, these rows included, and which was the first.

        Returns:
            Both of shape (windows,), ascending; BEFORE: the row came before these.
        """
        low = np.maximum(self._windows.firsts_after(event_time_ns), first)
        high = np.minimum(self._windows.lasts_begun(event_time_ns), last)
        before = np.array(self._known.within(first, last), dtype=np.int64).reshape(-1, 2)
        begins, ends = merged(
            np.concatenate([before[:, 0], low]), np.concatenate([before[:, 1], high])
        )
        _, windows = unfolded(begins, ends - begins + 1)
        found = _first_of(
            windows.searchsorted(low), windows.searchsorted(high, side="right") - 1, len(windows)
        )
        starts, stops = windows.searchsorted(before[:, 0]), windows.searchsorted(before[:, 1]) + 1
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            found[start:stop] = BEFORE
        return windows, found


def _first_of(low: Int64Array, high: Int64Array, places: int) -> Int64Array:
    """Return the first row over each place; row i is over low[i] … high[i]."""
    found = np.full(places, len(low))
    if not len(low):
        return found
    before = np.concatenate([[-1], np.maximum.accumulate(high)[:-1]])
    new = np.maximum(low, before + 1)
    row, place = unfolded(new, np.maximum(high - new + 1, 0))
    found[place] = row
    # What newer rows have leapt over, one that came out of order may be in.
    holes = np.concatenate([[0], np.cumsum(found == len(low))])
    back = np.flatnonzero((low <= before) & (low <= high))
    back = back[holes[high[back] + 1] > holes[low[back]]]
    row, place = unfolded(low[back], high[back] - low[back] + 1)
    np.minimum.at(found, place, back[row])
    return found

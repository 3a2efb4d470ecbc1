"""First rows of windows: a window without a row is counted apart.

```
rows, as they came   0: windows 3 4     1: 4 5     2: 9     3: 7 (out of order)
window               3  4  5  7  9      no row is in 6 and 8
its first row        0  0  1  3  2
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.closing.windows import Ranges, WindowEnds, merged
from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.ranges import unfold
from slackwater.runtime.model.state import Fields

LAST = 2**62
"""A window after all others."""
BEFORE = -1
"""Index of a first row that came before the given rows."""


class FirstRows:
    """Open windows that have had a row.

    Args:
        windows: the windows of the aggregate.
    """

    STATE = Fields("_known")

    def __init__(self, windows: WindowEnds) -> None:
        self._windows = windows
        self._known = Ranges()

    def add(self, event_time_ns: Int64Array, *, open_from: int) -> None:
        """Add rows; their windows before `open_from` are ignored."""
        low = np.maximum(self._windows.first_after(event_time_ns), open_from)
        self._known.add_all(*merged(low, self._windows.last_begun(event_time_ns)))

    def next_from(self, first: int) -> int:
        """Return the next window that has had a row; LAST without any."""
        return next((low for low, _ in self._known.within(first, LAST)), LAST)

    def among(
        self, event_time_ns: Int64Array, first: int, last: int
    ) -> tuple[Int64Array, Int64Array]:
        """Return the windows of first … last with a row, and each one's first row.

        Returns:
            Both of shape (windows,), ascending; BEFORE: the first row came before these.
        """
        low = np.maximum(self._windows.first_after(event_time_ns), first)
        high = np.minimum(self._windows.last_begun(event_time_ns), last)
        before = np.array(self._known.within(first, last), dtype=np.int64).reshape(-1, 2)
        begins, ends = merged(
            np.concatenate([before[:, 0], low]), np.concatenate([before[:, 1], high])
        )
        _, windows = unfold(begins, ends - begins + 1)
        first_row = _first_of(
            windows.searchsorted(low), windows.searchsorted(high, side="right") - 1, len(windows)
        )
        starts, stops = windows.searchsorted(before[:, 0]), windows.searchsorted(before[:, 1]) + 1
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            first_row[start:stop] = BEFORE
        return windows, first_row


def _first_of(low: Int64Array, high: Int64Array, places: int) -> Int64Array:
    """Return the first row over each place; row i is over low[i] … high[i]."""
    first_row = np.full(places, len(low))
    if not len(low):
        return first_row
    before = np.concatenate([[-1], np.maximum.accumulate(high)[:-1]])
    new = np.maximum(low, before + 1)
    row, place = unfold(new, np.maximum(high - new + 1, 0))
    first_row[place] = row
    # A row out of order may lie in places that newer rows have skipped.
    holes = np.concatenate([[0], np.cumsum(first_row == len(low))])
    back = np.flatnonzero((low <= before) & (low <= high))
    back = back[holes[high[back] + 1] > holes[low[back]]]
    row, place = unfold(low[back], high[back] - low[back] + 1)
    np.minimum.at(first_row, place, back[row])
    return first_row

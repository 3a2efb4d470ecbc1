"""Windows of event time, in whole panes: when each closes, and its panes.

```
size 3, slide 2        panes of gcd(3, 2) = 1
window 0  [0--)
window 1    [2--)      window k covers the panes k·slide … k·slide + size, in panes,
window 2      [4--)    and closes once the watermark has reached its end
```

Cumulative windows end there, too, and begin at the last whole size before their end.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from slackwater.runtime.closing.windows import Number
from slackwater.runtime.model import END_NS, START_NS, Int64Array
from slackwater.runtime.model.ranges import unfold
from slackwater.runtime.operators.aggregate.written import Window


class Windows:
    """Windows compute with numbered windows; they hold no state.

    A window is known by its k, a pane by its p: [offset + p·pane, offset + (p + 1)·pane), or the
    window itself, where windows stand side by side.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._pane_ns = gcd(window.size_ns, window.slide_ns)
        self._size = self._slide = 1
        if not window.is_tumbling:
            self._size = window.size_ns // self._pane_ns
            self._slide = window.slide_ns // self._pane_ns

    @property
    def are_disjoint(self) -> bool:
        """Whether each pane is in at most one window, which then is that pane."""
        return self._size == 1

    def panes_of(self, event_time_ns: Int64Array) -> Int64Array:
        """Return the pane of each event."""
        if self.are_disjoint:
            return self._window.last_begun(event_time_ns)
        return (event_time_ns - self._window.offset_ns) // self._pane_ns

    def lasts_ns(self, panes: Int64Array) -> Int64Array:
        """Return the last moment of each pane."""
        if self.are_disjoint:
            return self._window.end_ns(panes) - 1
        return (panes + 1) * self._pane_ns + (self._window.offset_ns - 1)

    def _first_pane(self, windows: Number) -> Number:
        """Return the first pane of each window."""
        if self.are_disjoint:
            return windows
        first: Number = (self._window.start_ns(windows) - self._window.offset_ns) // self._pane_ns
        return first

    def _last_over(self, panes: Number) -> Number:
        """Return the last window over each pane."""
        if self.are_disjoint:
            return panes
        return self._window.last_begun(panes * self._pane_ns + self._window.offset_ns)

    def last_closed(self, watermark_ns: int) -> int:
        """Return the last window whose end is not after the watermark; all at END_NS."""
        if watermark_ns in (START_NS, END_NS):
            return watermark_ns
        return self._window.first_after(watermark_ns) - 1

    def first_open_pane(self, last_closed: int) -> int:
        """Return the first pane that is in a window still open; older panes are done."""
        return max(START_NS, min(self._first_pane(last_closed + 1), END_NS))

    def first_whole_pane(self, last_closed: int) -> int:
        """Return the first pane that is in no closed window at all."""
        if last_closed in (START_NS, END_NS):
            return last_closed
        return max(START_NS, min(last_closed * self._slide + self._size, END_NS))

    def last_without(self, pane: int) -> int:
        """Return the last window after whose close this pane is still in an open window."""
        return self._last_over(pane) - 1

    def end_ns(self, window: int) -> int:
        """Return the end of a window."""
        return self._window.end_ns(window)

    def bounds_ns(self, windows: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return start and end of these windows."""
        return self._window.start_ns(windows), self._window.end_ns(windows)

    def promise_ns(self, sure_ns: int, *, is_start: bool = False) -> int:
        """Return the last moment in the earliest window still open: no older result will leave.

        Args:
            sure_ns: windows that end by then have closed for good.
            is_start: whether results may be as old as their windows' beginnings: return the first
                moment of that window.
        """
        if sure_ns in (START_NS, END_NS):
            return sure_ns
        window = self._window.first_after(sure_ns)
        if is_start:
            return max(self._window.start_ns(window), START_NS)
        return min(self._window.end_ns(window) - 1, END_NS)

    def covering(
        self, panes: Int64Array, *, after: int, until: int
    ) -> tuple[Int64Array, Int64Array]:
        """Return the first and last window, of those in (after, until], over each pane.

        The last is before the first if no window is over the pane.
        """
        first = np.maximum((panes - self._size + self._slide) // self._slide, after + 1)
        return first, np.minimum(self._last_over(panes), until)

    def panes_of_windows(
        self, first: Int64Array, last: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Return the first pane and the number of panes from one window to another, each.

        No panes, where the last is before the first. Panes between windows are among them.
        """
        begin = self._first_pane(first)
        return begin, np.where(last >= first, last * self._slide + self._size - begin, 0)

    def over_any(self, panes: Int64Array, *, after: int, until: int) -> Int64Array:
        """Return the windows in (after, until] over any of these ascending panes, ascending.

        Only the panes are looked at, so a leap over years of empty windows costs nothing.
        """
        first, last = self.covering(panes, after=after, until=until)
        last = np.maximum.accumulate(last)
        first[1:] = np.maximum(first[1:], last[:-1] + 1)  # each window once
        _, windows = unfold(first, np.maximum(last - first + 1, 0))
        return windows


def weights_of(
    first_at: Int64Array, last_at: Int64Array, load: Int64Array, *, windows: int
) -> Int64Array:
    """Return the load of each window, shape (windows,): the sum over its cells.

    Args:
        first_at: shape (cells,), the place of the first window that each cell is in.
        last_at: shape (cells,), the place after the last window that each cell is in.
        load: shape (cells,), the load of each cell.
        windows: the number of windows.
    """
    weights = np.zeros(windows + 1, dtype=np.int64)
    inside = np.flatnonzero(last_at > first_at)
    np.add.at(weights, first_at[inside], load[inside])
    np.subtract.at(weights, last_at[inside], load[inside])
    return weights.cumsum()[:-1]

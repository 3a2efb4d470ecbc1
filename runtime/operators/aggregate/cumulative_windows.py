"""Cumulative windows: several begin together, and each ends one step after the one before.

```
size 4, step 1      window -3  [0-)       window 1  [4-)
                    window -2  [0--)      window 2  [4--)
                    window -1  [0---)     window 3  [4---)
                    window  0  [0----)    window 4  [4----)
```

Window k ends where the sliding window k of that size and slide does. It begins at the last whole
size before that end. So numbers rise with beginnings and with ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.runtime.calls import checked_call
from slackwater.runtime.closing.windows import Number
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Duration, duration_ns, format_ns
from slackwater.runtime.operators.aggregate.written import MOST_WINDOWS, Closed, Window
from slackwater.runtime.shown import shown


@dataclass(frozen=True)
class CumulativeWindow(Window):
    """Windows that grow by `slide_ns` up to `size_ns`, which is a whole multiple of it."""

    @property
    def has_whole_slides(self) -> bool:  # noqa: D102
        return False

    @property
    def text(self) -> str:  # noqa: D102
        return f"cumulative, {self._text(f' in steps of {format_ns(self.slide_ns)}')}"

    @property
    def _steps(self) -> int:
        return self.size_ns // self.slide_ns

    def start_ns(self, window: Number) -> Number:  # noqa: D102
        start: Number = (window + (self._steps - 1)) // self._steps * self.size_ns + self.offset_ns
        return start

    def last_begun(self, event_time_ns: Number) -> Number:  # noqa: D102
        last: Number = (event_time_ns - self.offset_ns) // self.size_ns * self._steps
        return last


@checked_call
def cumulative(
    size: Duration, step: Duration, *, offset: Duration = "0s", closed: Closed = "start"
) -> CumulativeWindow:
    """Return windows that grow by `step` from each whole `size` on, up to that size.

    Each event is in the window of its step and in those that end later, up to the whole one.

    Args:
        size: length of the longest windows.
        step: time from the end of a window to the next; a whole number of them is a size.
        offset: time by which windows begin after whole sizes since 1970, in UTC.
        closed: the end that is in a window: "start": [start, end); "end": (start, end].

    Raises:
        SettingError: not lengths of time more than zero; a size that is not whole steps; or more
            than 100,000 windows for each event.
    """
    size_ns = duration_ns(size, what="cumulative size", positive=True)
    step_ns = duration_ns(step, what="step of cumulative windows", positive=True)
    if size_ns % step_ns:
        raise SettingError(
            f"cumulative({shown(size)}, {shown(step)}): the size must be whole steps, or the last "
            "window would end within one; write cumulative('1d', '1h'), say"
        )
    if size_ns > MOST_WINDOWS * step_ns:
        raise SettingError(
            f"cumulative({shown(size)}, {shown(step)}) puts an event in up to "
            f"{size_ns // step_ns:,} windows; {MOST_WINDOWS:,} is the most: make step= longer"
        )
    offset_ns = duration_ns(offset, what="offset of windows") % size_ns
    return CumulativeWindow(size_ns, step_ns, offset_ns + (closed == "end"), closed)

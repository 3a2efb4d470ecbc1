"""Windows without rows: each known key leaves them for a time after its rows.

```
key a     rows in windows 1 and 5      empty = the length of 3 windows
          1 ░ ░ ░ 5 ░ ░ ░              ░ leaves without rows
```

A key is known from its first window on, and forgotten once it had no row for that long. So memory
has a limit, and what leaves depends on the rows of the key alone: neither on how far promises came
before the end of the input, nor on other keys.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Int64Array
from slackwater.runtime.model.ranges import unfold
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.written import Window
from slackwater.runtime.operators.ground.arrays import GrowableArray


class EmptyWindows:
    """EmptyWindows has the last closed window with rows of each known key.

    Args:
        window: numbered windows of the step.
        empty_ns: time after a key's last window with rows in which others may begin.
    """

    STATE = Fields(Field("_lasts", by=OWNER))

    def __init__(self, window: Window, empty_ns: int) -> None:
        self._window, self._empty_ns = window, empty_ns
        self._lasts = GrowableArray(np.int64, fill=START_NS)  # by key; START_NS: it is not known

    def codes(self) -> Int64Array:
        """Return the codes of known keys, ascending."""
        return np.flatnonzero(self._lasts.values > START_NS)

    def close(
        self,
        codes: Int64Array,
        firsts: Int64Array,
        lasts: Int64Array,
        *,
        after: int,
        until: int,
        keys: int,
    ) -> tuple[Int64Array, Int64Array]:
        """Close the windows in (after, until]; return those without rows, and the codes of keys.

        Args:
            codes: shape (cells,), keys of all cells that are in one of these windows.
            firsts: shape (cells,), first window that each cell is in.
            lasts: shape (cells,), last window that each cell is in.
            after: last window that had closed before.
            until: last window that closes.
            keys: number of keys with codes so far.
        """
        self._lasts.resize(keys)
        known = self.codes()
        code = np.concatenate([known, codes])
        first, last = (np.concatenate([self._lasts.values[known], own]) for own in (firsts, lasts))
        order = np.lexsort((first, last, code))
        code, first, last = code.take(order), first.take(order), last.take(order)
        following = np.append(first[1:], END_NS)  # the next window with rows, of the key
        following[:-1][code[1:] != code[:-1]] = END_NS
        begins = np.maximum(last, after) + 1
        stops = np.minimum(np.minimum(following - 1, until), self._limits(last))
        entries, windows = unfold(begins, np.maximum(stops - begins + 1, 0))
        closed = np.flatnonzero(first <= until)
        np.maximum.at(self._lasts.values, code.take(closed), np.minimum(last.take(closed), until))
        known = self.codes()
        gone = self._limits(self._lasts.values[known]) <= until
        self._lasts.values[known[gone]] = START_NS
        has_time = self._window.end_ns(windows) > self._window.start_ns(windows)
        return windows[has_time], code.take(entries[has_time])  # a zone may leave a day out

    def _limits(self, lasts: Int64Array) -> Int64Array:
        """Return the last window that leaves without rows after each of some windows."""
        return self._window.last_begun(self._window.end_ns(lasts) + (self._empty_ns - 1))

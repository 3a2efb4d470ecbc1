"""Tried windows begin in short blocks of the stream, evenly spread.

The place of a block in its stride is drawn, whatever the load or the shedding. So tried windows
represent all, also those whose rows were passed over: a window of a block of B rows in a stride
of S represents S / B windows.

```
rows   |----------██----|---██-----------|--------------██|      ██: windows that begin here
        a stride, S rows                                             are tried
```
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.draws import draws_of_windows

ONE_OF = 8
LATER_ONE_OF = 64
"""Fitting events for each that is noted, once the share is known twice as well as it must be."""
_NOTE_NS = 10_000
"""Time to note an event for a tried window and to judge it: 9 µs on Q1, on one machine."""
_TRIED_SHARE = 0.03
"""Share of the time for events that noting may take."""
_SEED = 1
_KEEP = 15 / 16
_LEAST_SPAN = 64.0
_ENOUGH_WINDOWS = 16


def is_quick_to_judge(events: int, spare_ns: float) -> bool:
    """Return whether a window of so many noted events is judged in `spare_ns`."""
    return events * _NOTE_NS <= spare_ns


def affordable_one_of(least: int, cost_ns: float) -> int:
    """Return n so that noting one of n fitting events costs little.

    Args:
        least: fewer are never returned.
        cost_ns: the time that an event takes; 0: not known.
    """
    return max(least, round(_NOTE_NS / (_TRIED_SHARE * cost_ns)) if cost_ns else 0)


class Block(NamedTuple):
    """A block of rows: windows that begin with them are tried.

    Attributes:
        number: the number of the stride.
        first, end: [first, end) of all rows.
        stands_for: the number of windows that each represents.
    """

    number: int
    first: int
    end: int
    stands_for: float


class Probes:
    """Probes draws blocks, by the lengths of windows known when a stride begins.

    Args:
        least: number of fitting events of which at most one may be noted for tried windows.
        has_gaps: whether rows between blocks need not be looked at: then blocks are short.
    """

    STATE = Fields(
        "_end",
        "_number",
        "_blocks",
        "_opened",
        "_seen",
        "_fit",
        "_span",
        "_size",
        "_one_of",
        "_ended",
        elements={"_blocks": Block},
    )

    def __init__(self, *, least: int = ONE_OF, has_gaps: bool = True) -> None:
        self._has_gaps = has_gaps
        self._end = 0  # the end of the last stride
        self._number = 0
        self._blocks: list[Block] = []  # blocks that may not be over
        # Windows, the rows that they were seen to open among, and those of these that fit.
        self._opened = self._seen = self._fit = 0.0
        self._span = self._size = 0.0  # rows of a window: of all keys while it is open, and its own
        self._least = self._one_of = least
        self._ended = 0  # windows so far

    def opened(self, windows: int, rows: int, fit: int) -> None:
        """Count windows that opened, the rows that these opened among, and those that fit."""
        self._opened += windows
        self._seen += rows
        self._fit += fit

    def ended(self, span: int, size: int) -> None:
        """Note a window that is over: all rows that came meanwhile, and its own."""
        self._ended += 1
        keep = _KEEP if self._span else 0.0
        self._span = keep * self._span + (1 - keep) * max(span, 1)
        self._size = keep * self._size + (1 - keep) * max(size, 1)

    @property
    def knows_windows(self) -> bool:
        """Whether enough windows have ended to know their length."""
        return self._ended >= _ENOUGH_WINDOWS

    def set_rate(self, cost_ns: float, *, is_known_well: bool) -> None:
        """Set how many events are noted from the next stride on.

        Args:
            cost_ns: the time that an event takes; 0: not known.
            is_known_well: whether the share is known better than it must be. Fewer tries tell
                less, so that the rate rises again before the share is unknown.
        """
        least = LATER_ONE_OF if is_known_well else self._least
        self._one_of = affordable_one_of(least, cost_ns)

    def begin(self, row: int) -> None:
        """Begin the first stride with a row."""
        self._end = row

    def blocks(self, first: int, end: int) -> list[Block]:
        """Return the blocks that have rows of a range; ranges follow each other.

        Args:
            first: the first row, among all rows.
            end: the row after the last.
        """
        while self._end < end:
            self._blocks.append(self._next())
        self._blocks = [block for block in self._blocks if block.end > first]
        return [block for block in self._blocks if block.first < end]

    def _next(self) -> Block:
        span = max(self._span, _LEAST_SPAN)
        stride = round(self._one_of * span)
        # All windows note each row that fits as often as it is in one.
        often = self._size * self._opened / self._seen if self._opened else 1.0
        fit = self._fit / self._seen if self._fit else 1.0
        length = round(stride / max(self._one_of * often * fit, 1.0))
        if self._has_gaps:
            length = min(length, round(span))
        length = max(length, 1)
        at = draws_of_windows(np.array([self._number]), seed=_SEED).item()
        first = self._end + int(at * (stride - length + 1))
        block = Block(self._number, first, first + length, stride / length)
        self._end, self._number = self._end + stride, self._number + 1
        return block

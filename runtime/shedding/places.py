"""A place is the cell of an event in its window's utility table.

Windows differ in size, a table has so many cells. A position P of a window of ws events covers the
cells from P·C/ws up to (P + 1)·C/ws, without that one, and one at least:

```
ws > C   several positions share a cell            (scaled down; or bins of ws/C positions)
ws = C   each has its own
ws < C   each covers several                       (scaled up: the utility is their mean)
```

Source: [espice] §3.6, *handling variable window size* and *bins*, which are one here.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.shedding.draws import FloatArray

Sizes = Int64Array | int
"""Events of each pair's window, shape (pairs,), or of all windows."""


def likely_sizes(
    positions: Int64Array, in_a_window: FloatArray | Int64Array | float, left: FloatArray
) -> Int64Array:
    """Return the likely sizes of windows by time, as far as each event can tell.

    The events so far are known; in the remaining time as many come as came lately. A size predicted
    once, when the window opens, is off by a fifth on quotes. A shedder by places then drops the
    whole end of a window that grows longer, and nothing of one that stays shorter.

    Args:
        positions: shape (pairs,), among the events of the window, from 0.
        in_a_window: events that come in the time of a window, of late; shape (pairs,) or one.
        left: shape (pairs,), the share of the window's time that is left, 0 to 1.

    Source: [espice] §3.6 has a prediction done elsewhere, once for each window.
    """
    more = np.ceil(in_a_window * np.clip(left, 0.0, 1.0)).astype(np.int64)
    sizes: Int64Array = positions + np.maximum(more, 1)
    return sizes


def within(positions: Int64Array, sizes: Sizes) -> Int64Array:
    """Return positions, cut to the last one, as a window may outgrow its prediction."""
    inside: Int64Array = np.minimum(positions, np.subtract(sizes, 1))
    return inside


def first_cells(positions: Int64Array, sizes: Sizes, cells: int) -> Int64Array:
    """Return the first cell that each position covers; positions are within their windows."""
    first: Int64Array = positions * cells // sizes
    return first


def end_cells(positions: Int64Array, sizes: Sizes, cells: int) -> Int64Array:
    """Return the cell after the last one that each position covers."""
    ends: Int64Array = np.maximum(
        (positions + 1) * cells // sizes, first_cells(positions, sizes, cells) + 1
    )
    return ends


def covered(positions: Int64Array, sizes: Int64Array, cells: int) -> tuple[Int64Array, Int64Array]:
    """Return all pairs of an event's index and a cell that it covers, by event."""
    inside = within(positions, sizes)
    first, end = first_cells(inside, sizes, cells), end_cells(inside, sizes, cells)
    counts = end - first
    events = np.repeat(np.arange(len(positions)), counts)
    begins = np.cumsum(counts) - counts
    return events, np.repeat(first - begins, counts) + np.arange(len(events))

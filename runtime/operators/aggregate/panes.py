"""PaneCells knows the cells of each pane, so a search skips other panes' cells.

Cells are numbered as they appear, so the cells of a pane mostly follow each other: a pane has a
few runs of cells.
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.operators.ground.arrays import starts_of_runs, unfold

_NONE = np.empty(0, dtype=np.int64)


class PaneCells:
    """PaneCells has the cells of each pane.

    Cells are added in the order of their numbers.
    """

    def __init__(self) -> None:
        self._panes: list[int] = []  # panes that have cells, ascending
        self._runs: dict[int, list[int]] = {}  # {pane: start, stop, start, stop, … of its cells}
        self._cells = 0

    def __len__(self) -> int:
        return self._cells

    def add(self, panes: Int64Array, *, first: int) -> None:
        """Add cells.

        Args:
            panes: shape (cells,): the pane of each; quickest when equal panes stand together.
            first: the number of the first cell; the others have the next numbers.
        """
        if not len(panes):
            return
        begin = starts_of_runs(panes)
        starts = begin.tolist()
        stops = [*starts[1:], len(panes)]
        for start, stop, pane in zip(starts, stops, panes.take(begin).tolist(), strict=True):
            runs = self._runs.get(pane)
            if runs is None:
                self._runs[pane] = [first + start, first + stop]
                if not self._panes or self._panes[-1] < pane:
                    self._panes.append(pane)
                else:
                    insort(self._panes, pane)
            elif runs[-1] == first + start:
                runs[-1] = first + stop
            else:
                runs += [first + start, first + stop]
        self._cells += len(panes)

    def between(self, first: int, end: int) -> list[int]:
        """Return the panes in [first, end) that have cells, ascending."""
        return self._panes[bisect_left(self._panes, first) : bisect_left(self._panes, end)]

    def cells(self, panes: list[int]) -> Int64Array:
        """Return the cells of these panes, ascending."""
        if not panes:
            return _NONE
        runs: list[int] = []
        for pane in panes:
            more = self._runs[pane]
            if runs and runs[-1] == more[0]:  # the usual case
                runs[-1] = more[1]
                more = more[2:]
            runs += more
        if len(runs) == 2:
            return np.arange(runs[0], runs[1])
        both = np.array(runs, dtype=np.int64)
        _, cells = unfold(both[::2], both[1::2] - both[::2])
        cells.sort()
        return cells

    def drop_before(self, pane: int) -> Int64Array:
        """Forget all older panes; return their cells."""
        gone = self._panes[: bisect_left(self._panes, pane)]
        cells = self.cells(gone)
        del self._panes[: len(gone)]
        for old in gone:
            del self._runs[old]
        self._cells -= len(cells)
        return cells

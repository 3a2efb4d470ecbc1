"""A cell is the rows of one key in one pane.

Cells are numbered in order of first appearance.
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.divided import keep
from slackwater.runtime.model.ranges import starts_of_runs, unfold
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.arrays import GrowableArray, slices_of_weight
from slackwater.runtime.operators.ground.codes import IntCodes

_AT_ONCE = 1 << 20
"""Panes that are looked up at once."""
_ROOM_BITS = 3
"""Bits of a key's code beyond those of the keys that stay, at most."""
_LONG_RUN = 512
"""A run of so many rows of one pane is worth a look-up of its own."""


class Cells:
    """Cells gives each row its cell, and knows each cell's pane and key code."""

    STATE = Fields(Field("_codes", of=OWNER), Field("_panes", by="_codes"))

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._panes = GrowableArray(np.int64, is_log=True)
        self._codes = GrowableArray(np.int64, is_log=True)
        self._slots: dict[int, int] = {}  # {pane: its dense number}
        self._pane_of_slot = GrowableArray(np.int64)
        self._index = IntCodes()  # slot and code, together, to cell
        self._bits = 6  # the bits of the code
        self.of_panes = PaneCells()
        """The cells of each pane, without panes that are done but not forgotten yet."""

    def __len__(self) -> int:
        return len(self._index)

    @property
    def panes(self) -> Int64Array:
        """The pane of each cell."""
        return self._panes.values

    @property
    def codes(self) -> Int64Array:
        """The key's code of each cell."""
        return self._codes.values

    def of(self, panes: Int64Array, codes: Int64Array, *, keys: int) -> Int64Array:
        """Return the cell of each row; new cells are made where needed.

        Args:
            panes: shape (rows,); quickest when equal panes stand together.
            codes: shape (rows,), each less than `keys`.
            keys: the number of keys.
        """
        if keys >> self._bits:
            self._bits = keys.bit_length() + 1
            self._index.replace(self._together(self.panes, self.codes))
        size = len(self)
        cells = self._found(panes, codes)
        if len(self) > size:
            new = self._index.values[size:]
            new_panes = self._pane_of_slot.values.take(new >> self._bits)
            self.of_panes.add(new_panes, first=size)
            self._panes.append(new_panes)
            self._codes.append(new & ((1 << self._bits) - 1))
        return cells

    def beside(self, cells: Int64Array, starts: Int64Array, counts: Int64Array) -> Int64Array:
        """Return the cells, ascending, that the keys of some cells have in given panes.

        Args:
            cells: shape (cells,); a cell may be there several times, with the same panes.
            starts: shape (cells,): the first pane wanted for each cell.
            counts: shape (cells,): the number of panes wanted for each cell.
        """
        cells, places = np.unique(cells, return_index=True)
        starts, counts, codes = starts.take(places), counts.take(places), self.codes.take(cells)
        chunks = []
        for some in slices_of_weight(counts, _AT_ONCE):
            of, panes = unfold(starts[some], counts[some])
            chunks.append(self._find(panes, codes[some].take(of)))
        return np.unique(np.concatenate(chunks))

    def keep(self, cells: Int64Array) -> None:
        """Forget all other cells; `cells` ascends."""
        keep(self, "_codes", cells)

    def first_within(self, rows: Int64Array, most: int) -> int:
        """Return the first pane from which on at most `most` rows follow.

        The last pane, if even that has more.

        Args:
            rows: shape (cells,), the rows of each cell.
            most: the largest number of rows.
        """
        panes, of = np.unique(self.panes, return_inverse=True)
        newer = np.bincount(of, weights=rows)[::-1].cumsum()[::-1]
        first = int(newer.size - newer[::-1].searchsorted(most, "right"))
        return panes.item(min(first, len(panes) - 1))

    def derive(self) -> None:
        """Number the cells again, as if all had appeared at once."""
        panes, codes, bits = self.panes, self.codes, self._bits
        self._clear()
        keys = int(codes.max(initial=0)) + 1
        self._bits = min(bits, keys.bit_length() + _ROOM_BITS)  # more keys are about to come
        self.of(panes, codes, keys=keys)

    def _find(self, panes: Int64Array, codes: Int64Array) -> Int64Array:
        """Return the existing cells among pairs of pane and code; shape (found,)."""
        distinct, places = np.unique(panes, return_inverse=True)
        slots = np.array([self._slots.get(pane, -1) for pane in distinct.tolist()], np.int64)
        slots = slots.take(places)
        there = np.flatnonzero(slots >= 0)
        cells = self._index.find((slots.take(there) << self._bits) | codes.take(there))
        known: Int64Array = cells[cells >= 0]
        return known

    def _found(self, panes: Int64Array, codes: Int64Array) -> Int64Array:
        if not len(panes):
            return panes
        starts = starts_of_runs(panes)
        if len(panes) < _LONG_RUN * len(starts):
            return self._index.codes(self._together(panes, codes))
        cells = np.empty(len(panes), dtype=np.int64)
        stops = [*starts[1:].tolist(), len(panes)]
        for start, stop, pane in zip(
            starts.tolist(), stops, panes.take(starts).tolist(), strict=True
        ):
            cells[start:stop] = self._index.codes_from(
                self._slot(pane) << self._bits, codes[start:stop], span=1 << self._bits
            )
        return cells

    def _together(self, panes: Int64Array, codes: Int64Array) -> Int64Array:
        if not len(panes):
            return panes
        starts = starts_of_runs(panes)
        slots = np.array([self._slot(pane) for pane in panes.take(starts).tolist()], np.int64)
        slots <<= self._bits
        if len(starts) == 1:
            return slots | codes
        together: Int64Array = slots.repeat(np.diff(starts, append=len(panes)))
        together |= codes
        return together

    def _slot(self, pane: int) -> int:
        slot = self._slots.get(pane)
        if slot is None:
            slot = self._slots[pane] = len(self._slots)
            self._pane_of_slot.append(np.array([pane], dtype=np.int64))
        return slot


_NONE = np.empty(0, dtype=np.int64)


class PaneCells:
    """PaneCells has the cells of each pane: a search skips other panes.

    Cells are added in the order of their numbers. They are numbered as they appear, so the cells of
    a pane mostly follow each other: a pane has a few runs of cells.
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

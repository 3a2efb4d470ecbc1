"""Small array tools that the operators share: arrays that grow, runs, slices of a weight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.divided import StayingNumbers
from slackwater.runtime.model.later import Later

_VALUES = 256
"""Values that are saved in a step for each key that may be saved in it."""
_NOTED = 32
"""The same of values that have changed meanwhile, which lie apart from each other."""
_PIECE = 1 << 18
"""Values of a saved array that are together, 2 MB at most: from 4 MB on, NumPy asks for pages of
2 MB, and a write to the first place of such a page took 5 ms."""


class GrowableArray:
    """A one-dimensional array that grows at its end, in amortised constant time per value.

    It packs itself: its room for more values is not saved.

    Args:
        dtype: the type of the values.
        fill: the value of new places, where `extend` gives none.
        is_log: whether no value changes in its place, and the array never gets shorter in its
            place; then a snapshot is a view.
    """

    def __init__(self, dtype: npt.DTypeLike, *, fill: Any = 0, is_log: bool = False) -> None:
        self._fill, self._is_log = fill, is_log
        self._data = np.full(16, fill, dtype=dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values so far, shape (len,): a view, good until the next change."""
        return self._data[: self._size]

    def append(self, values: npt.NDArray[Any]) -> None:
        """Add values at the end."""
        start = self._size
        self.resize(start + len(values))
        self._data[start : self._size] = values

    def resize(self, size: int) -> None:
        """Grow to `size` values; the new ones are `fill`."""
        if size > len(self._data):
            grown = np.empty(max(size, 2 * len(self._data)), dtype=self._data.dtype)
            grown[: self._size] = self._data[: self._size]
            grown[self._size :] = self._fill
            self._data = grown
        self._size = size

    def keep(self, stay: Int64Array) -> None:
        """Forget all places but these, which ascend; what is beyond the end is `fill`."""
        self.replace(self.values.take(stay[: stay.searchsorted(len(self))]))
        self.resize(len(stay))

    def renumber(self, kept: StayingNumbers) -> StayingNumbers:
        """Give values, which are numbers, their new ones; return the places that stay."""
        moved = kept.moved(self.values)
        stay = (moved >= 0).nonzero()[0]
        self.replace(moved.take(stay))
        return StayingNumbers(stay)

    def replace(self, values: npt.NDArray[Any]) -> None:
        """Hold a copy of these values instead."""
        self._data = np.full(max(16, len(values)), self._fill, dtype=self._data.dtype)
        self._data[: len(values)] = values
        self._size = len(values)

    def snapshot(self) -> npt.NDArray[Any]:
        """Return the values: a view of a log, else a copy."""
        return self.values if self._is_log else self.values.copy()

    def restore(self, state: npt.NDArray[Any] | list[npt.NDArray[Any]]) -> None:
        """Hold a copy of saved values, which may be in pieces."""
        if isinstance(state, list):
            state = np.concatenate([self._data[:0], *state])
        self.replace(state)


class ChangingArray(GrowableArray):
    """A growable array whose values change in their places, even while it is saved."""

    def __init__(self, dtype: npt.DTypeLike, *, fill: Any = 0) -> None:
        super().__init__(dtype, fill=fill)
        self._saving: _SavedArray | None = None

    def change(self, ufunc: np.ufunc, places: Int64Array, values: Any) -> None:
        """Apply a function to the values at some places, as `ufunc.at` does."""
        self._note(places)
        ufunc.at(self.values, places, values)

    def put(self, places: Int64Array, values: npt.NDArray[Any]) -> None:
        """Have these values at these places, each of which is there once."""
        self._note(places)
        self.values[places] = values

    def _note(self, places: Int64Array) -> None:
        """Keep the values of places that are about to change, for what is being saved."""
        if self._saving is not None:
            if self._saving.is_copied:
                self._saving = None
            else:
                self._saving.note(self._data, places)

    def snapshot_later(self) -> Later:
        """Begin to save the values."""
        if self._saving is not None:
            self._saving.finish()
        self._saving = _SavedArray(self._data, self._size)
        return self._saving


class _SavedArray(Later):
    """Values of a `ChangingArray` at its cut: a copy, and earlier values of what changed.

    Args:
        data: the array's room, of which nothing else changes in its place.
        size: number of its values.
    """

    def __init__(self, data: npt.NDArray[Any], size: int) -> None:
        super().__init__()
        self._data, self._size = data, size
        self._copied = 0
        self._notes: list[tuple[Int64Array, npt.NDArray[Any]]] = []
        self.plain = [
            np.empty(min(_PIECE, size - start), dtype=data.dtype)
            for start in range(0, size, _PIECE)
        ]

    @property
    def is_copied(self) -> bool:
        """Whether changes need no note any more."""
        return self.is_done or self._copied == self._size

    def note(self, data: npt.NDArray[Any], places: Int64Array) -> None:
        """Keep values that are about to change."""
        if data is self._data:  # else it has moved to more room, and changes there
            began_ns = self.cpu_ns()
            self._notes.append((places, data.take(places)))
            self.early_ns += self.cpu_ns() - began_ns

    def step(self, most: int) -> None:
        if self._copied < self._size:
            number, start = divmod(self._copied, _PIECE)
            piece = self.plain[number][start : start + most * _VALUES]
            piece[:] = self._data[self._copied : self._copied + len(piece)]
            self._copied += len(piece)
        elif self._notes:  # the latest first, so that the value at the cut is the last
            places, values = self._notes.pop()
            few = most * _NOTED
            if len(places) > few:  # a place that is there twice has the same value
                self._notes.append((places[few:], values[few:]))
                places, values = places[:few], values[:few]
            pieces = np.where(places < self._size, places // _PIECE, len(self.plain))
            for number, piece in enumerate(self.plain):
                here = pieces == number
                piece[places[here] - number * _PIECE] = values[here]
        self.is_done = self._copied == self._size and not self._notes


def places_in_runs(starts: Int64Array, rows: int) -> Int64Array:
    """Return the place of each row in its run, from 0, shape (rows,).

    Args:
        starts: shape (runs,), the rows at which runs begin; the first is 0.
        rows: number of rows in all runs.
    """
    places: Int64Array = np.arange(rows) - starts.repeat(np.diff(starts, append=rows))
    return places


def newest_marks(marks: BoolArray) -> Int64Array:
    """Return the place of the newest mark up to each place; 0 before the first."""
    newest: Int64Array = np.maximum.accumulate(np.where(marks, np.arange(len(marks)), 0))
    return newest


def order_of_floats(floats: npt.NDArray[np.floating[Any]]) -> Int64Array:
    """Return whole numbers in the order of floats: −0.0 before 0.0, NaN last.

    So floats of equal numbers are the same, and NumPy's quick sort need not be stable.
    """
    own = floats.astype(np.float64)
    own[np.isnan(own)] = np.nan  # of many bit patterns one, above infinity
    bits = own.view(np.int64)
    whole: Int64Array = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return whole


def slices_of_weight(weights: Int64Array, limit: int) -> Iterator[slice]:
    """Yield slices over the weights, each of one place or of at most `limit`."""
    totals = weights.cumsum()
    start, done = 0, 0
    while start < len(weights):
        stop = max(start + 1, int(totals.searchsorted(done + limit, "right")))
        yield slice(start, stop)
        start, done = stop, int(totals[stop - 1])

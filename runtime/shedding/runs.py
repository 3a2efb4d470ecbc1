"""Stretches of windows are looked up together in a table of utilities with a cut.

Event n of a stretch is at position n − first. So rows of the table come as a slice of what is known
of the events, and cells as a slice of a table of positions. A pair costs one look, and nothing is
computed for it alone. The cut's effect on whole rows, and the end of a window at which it drops
nothing at all, are known before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.shedding.draws import FloatArray
from slackwater.runtime.shedding.places import first_cells
from slackwater.runtime.shedding.spans import Dropped, Spans, starts_of
from slackwater.runtime.shedding.thresholds import LEVELS, Utilities

NEVER, OPEN, SURELY, DRAWN = 0, 1, 2, 3
"""The fate of an event in a window. OPEN: its place decides. DRAWN: one draw decides, as
its chance is the same everywhere."""
_SHORT = 32
"""Pieces with fewer open events than this in the mean are quicker looked up pair by pair."""
_MANY, _MANY_CELLS = 1 / 3, 0.9
"""Up to this share of open events the others are left out; with more it is quicker not to. The
second is for windows with as many events as there are cells."""
_MOST = 1 << 20
"""With more partitions by cells than this, cells that drop nothing are not searched for."""

T = TypeVar("T", bound=np.generic)
Int32Array = npt.NDArray[np.int32]
"""Places in a table: of 65,536 cells and 8,192 rows, the most there are, 2^29."""
Drawn = Callable[[FloatArray, Int64Array], BoolArray]
"""Chances, events: for which of these events their draw is below the chance."""


class CellTable:
    """Utilities by cells: neighbours in a stretch have neighbouring cells, and any rows.

    Args:
        utilities: shape (rows, cells), of the model.

    Attributes:
        utilities: shape (cells, rows).
        least, most: shape (rows,), of each row.
        least_of_cell: shape (cells,).
    """

    def __init__(self, utilities: Utilities) -> None:
        self.utilities: Utilities = np.ascontiguousarray(utilities.T)
        self.least: Utilities = utilities.min(axis=1)
        self.most: Utilities = utilities.max(axis=1)
        self.least_of_cell: Utilities = utilities.min(axis=0)


class CutTable:
    """Utilities and the chances by which each is dropped.

    Args:
        table: the table of utilities.
        chances: shape (partitions, 101), see `Cut`.

    Attributes:
        low, high: shape (rows,), the least and the highest chance of each row.
        states: shape (rows,), the fate of events of each row.
        is_drawn: whether any is DRAWN.
    """

    def __init__(self, table: CellTable, chances: FloatArray) -> None:
        least, most = table.least, table.most
        self._table = table.utilities
        self.low: FloatArray = chances.min(axis=0)[most]
        self.high: FloatArray = chances.max(axis=0)[least]
        self.states: npt.NDArray[np.uint8] = np.full(len(least), OPEN, np.uint8)
        self.states[self.low == self.high] = DRAWN
        self.states[self.low >= 1] = SURELY
        self.states[self.high <= 0] = NEVER
        self.is_drawn = bool((self.states == DRAWN).any())
        # For each partition: the least utility that needs a draw, and its chance. Higher ones are
        # kept, since there is a model.
        self._firm = np.count_nonzero(chances >= 1, axis=1).astype(np.uint8)
        self._rest: FloatArray = np.take_along_axis(
            chances, np.minimum(self._firm, LEVELS - 1)[:, np.newaxis].astype(np.int64), axis=1
        )[:, 0]
        self._rest[self._firm == LEVELS] = 0.0
        self._partitions = len(chances)
        reach = self._firm + (self._rest > 0)
        self._live = np.array([[0], [len(table.least_of_cell)]]).repeat(len(chances), axis=1)
        if len(chances) * len(table.least_of_cell) <= _MOST:
            self._live = _hull(table.least_of_cell < reach[:, np.newaxis])

    def settled(
        self, rows: Int64Array, events: Int64Array, drawn: Drawn
    ) -> tuple[BoolArray, Int64Array]:
        """Return which events are dropped everywhere, and indices of the open ones.

        Args:
            rows: shape (events,), the row of each.
            events: shape (events,), their numbers.
            drawn: tells for chances and events whether they are dropped.
        """
        states = self.states.take(rows)
        surely = states == SURELY
        if self.is_drawn:
            alike = np.flatnonzero(states == DRAWN)
            surely[alike] = drawn(self.low.take(rows[alike]), events[alike])
        return surely, np.flatnonzero(states == OPEN)

    def pieces(self, spans: Spans, *, share: float) -> tuple[Spans, Int64Array, Int64Array] | None:
        """Return pieces of the spans in one partition each, where something may be dropped.

        Args:
            spans: the spans of a read.
            share: the share of its events whose fate is open.

        Returns:
            the pieces, the span of each, and its partition. None if that is not worth it, or
            windows have fewer events than there are cells, so that positions have means of several
            cells.
        """
        cells = len(self._table)
        if spans.sizes.min(initial=cells) < cells:
            return None
        which, part = np.arange(len(spans)), np.zeros(len(spans), np.int64)
        if self._partitions > 1:
            spans, which, part = spans.cut(self._partitions)
        if share * int(spans.lengths.sum()) <= _SHORT * len(spans):
            return None
        low, high = self._live[:, part]
        begins = spans.firsts + starts_of(low, spans.sizes, cells)
        ends = spans.firsts + starts_of(high, spans.sizes, cells)
        return spans.within(begins, np.where(high == cells, spans.ends, ends)), which, part

    def dropped(
        self,
        rows: Int64Array,
        pieces: tuple[Spans, Int64Array, Int64Array],
        *,
        surely: BoolArray,
        open_: Int64Array,
        events: Int64Array,
        drawn: Drawn,
    ) -> Dropped:
        """Return which pairs are dropped.

        Args:
            rows: shape (events,), the row of each event.
            pieces: the result of `pieces`.
            surely: shape (events,), the events of which no pair is listed.
            open_: indices of the events whose fate is open.
            events: shape (events,), their numbers.
            drawn: tells for chances and events whether they are dropped.
        """
        spans, of_span, part = pieces
        among = None
        if spans.are_alike and len(open_) <= self._many(int(spans.sizes[0])) * len(rows):
            among = open_
            begins, ends = (open_.searchsorted(bounds) for bounds in (spans.begins, spans.ends))
            spans = Spans(spans.firsts, begins, ends, spans.sizes)
            utilities = self._looked_up_among(open_, rows.take(open_), spans)
        else:
            utilities = self._looked_up(rows, spans)
        limits: npt.NDArray[np.uint8] | np.uint8 = self._firm[0]
        if self._partitions > 1:
            limits = np.repeat(self._firm[part], spans.lengths)
        is_dropped = utilities < limits
        if self._rest.any():
            at_limit = np.flatnonzero(utilities == limits)
            counts, at = spans.placed(at_limit)
            chances = np.repeat(self._rest[part], counts)
            numbers = events.take(at if among is None else among.take(at))
            is_dropped[at_limit] = drawn(chances, numbers)
        if among is None and surely.any():
            is_dropped &= ~_in_spans(surely, spans)
        return Dropped(surely, spans, of_span, among, is_dropped)

    def _many(self, size: int) -> float:
        return _MANY_CELLS if size == len(self._table) else _MANY

    def _looked_up_among(self, among: Int64Array, rows: Int64Array, spans: Spans) -> Utilities:
        """Return the utility of each pair, span by span, of stretches of some events.

        Args:
            among: shape (some,), their places among all.
            rows: shape (some,), of these.
            spans: their spans; their firsts are places among all.
        """
        cells, count = self._table.shape
        lengths, size = spans.lengths, int(spans.sizes[0])
        if size == cells:  # each position is a cell
            places = _in_spans(rows + count * among, spans)
            places -= np.repeat(count * spans.firsts, lengths)
        else:
            positions = _in_spans(among, spans)
            positions -= np.repeat(spans.firsts, lengths)
            places = columns_by_position(size, cells, count).take(positions)
            places += _in_spans(rows.astype(np.int32), spans)
        return self._table.ravel().take(places)

    def _looked_up(self, rows: Int64Array, spans: Spans) -> Utilities:
        places = _in_spans(rows.astype(np.int32), spans)
        places += np.concatenate(_columns_of(spans, *self._table.shape))
        return self._table.ravel().take(places)


def _hull(is_live: BoolArray) -> Int64Array:
    """Return [first, end) of the live cells of each row: shape (2, rows).

    Both are 0 for a row without live cells.
    """
    cells = is_live.shape[1]
    some = is_live.any(axis=1)
    low = np.where(some, is_live.argmax(axis=1), 0)
    high = np.where(some, cells - is_live[:, ::-1].argmax(axis=1), 0)
    return np.stack([low, high])


def _in_spans(values: npt.NDArray[T], spans: Spans) -> npt.NDArray[T]:
    begins, ends = spans.begins.tolist(), spans.ends.tolist()
    return np.concatenate([values[begin:end] for begin, end in zip(begins, ends, strict=True)])


def _columns_of(spans: Spans, cells: int, rows: int) -> list[Int32Array]:
    """Return the beginnings in a table of the cells of each span's positions."""
    begins, ends = (spans.begins - spans.firsts).tolist(), (spans.ends - spans.firsts).tolist()
    sizes = spans.sizes.tolist()
    alike = None
    if sizes.count(sizes[0]) == len(sizes):
        alike = columns_by_position(sizes[0], cells, rows)
    columns = []
    for begin, end, size in zip(begins, ends, sizes, strict=True):
        if alike is not None and end <= size:
            columns.append(alike[begin:end])
        else:
            inside = np.minimum(np.arange(begin, end), size - 1)
            columns.append((first_cells(inside, size, cells) * rows).astype(np.int32))
    return columns


@lru_cache(maxsize=8)
def columns_by_position(size: int, cells: int, rows: int) -> Int32Array:
    """Return the beginning in a table of the cell of each position of a window."""
    columns: Int32Array = (first_cells(np.arange(size), size, cells) * rows).astype(np.int32)
    columns.flags.writeable = False
    return columns

"""eSPICE drops events by their type and their position in the window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.change import ChangeTest
from slackwater.runtime.shedding.draws import FloatArray
from slackwater.runtime.shedding.places import Sizes, end_cells, first_cells, within
from slackwater.runtime.shedding.runs import CellTable, CutTable
from slackwater.runtime.shedding.settings import Model
from slackwater.runtime.shedding.shedder import CHANCE, Learning, Shedder
from slackwater.runtime.shedding.spans import Dropped, Spans
from slackwater.runtime.shedding.table import Learnt, UtilityTable
from slackwater.runtime.shedding.thresholds import (
    LEVELS,
    MOST_UTILITY,
    Cut,
    Utilities,
    cdt_of_partitions,
    cut_of,
)
from slackwater.runtime.shedding.windows import FinishedWindows


class EspiceShedder(Shedder):
    """EspiceShedder drops the pairs of least utility.

    Before anything can be ranked (no window has finished, or none had a match), events are dropped
    at random. A type that was never seen has the highest utility: it goes last.

    Args:
        model: how it learns, and how it cuts.
        seed: the seed of the draws.

    Source: [espice] §3.3, §3.5, §3.6.
    """

    STATE = Shedder.STATE + Fields("_table", "_test", "turns", "changes")
    is_by_window = True
    _looks_at = "type, place"

    def __init__(self, model: Model, *, seed: int) -> None:
        super().__init__(seed=seed, explore=model.explore, sample=model.sample)
        self._model = model
        self._table = UtilityTable(model.cells, scale=model.scale, smooth=model.smooth)
        self._test = ChangeTest() if model.detect else None
        self.turns = 0  # times that the model was built
        self.changes = 0  # times that the stream was found to be another
        self._rebuild()
        self._aimed()

    @property
    def learnt(self) -> Learnt:
        """The model that events are ranked by."""
        return self._learnt

    @property
    def size(self) -> float:  # noqa: D102
        return self._learnt.size

    @property
    def is_trained(self) -> bool:  # noqa: D102
        return self._learnt.is_trained

    @property
    def ranked_by(self) -> str:  # noqa: D102
        return f"utility ({self._looks_at})" if self.is_trained else CHANCE

    @property
    def learning(self) -> Learning:  # noqa: D102
        return Learning(self.turns, self.changes, self._learnt)

    @property
    def left(self) -> int:
        """Windows that are still to be learnt from before the model is built again."""
        due = self._model.every if self.turns else self._model.first
        return due - self._table.recent

    @property
    def cut(self) -> Cut:
        """The chances by which each utility is dropped now."""
        return self._cut

    def learn(self, finished: FinishedWindows) -> None:
        """Learn from windows that are over; the model is rebuilt at intervals of windows.

        Source: [espice] §3.6, *model retraining*.
        """
        begin = 0
        while begin < len(finished):
            end = min(begin + self.left, len(finished))
            self._learn_part(finished.part(begin, end))
            if not self.left:
                self._turn()
            begin = end

    def _turn(self) -> None:
        keep = self._model.keep
        if self._test is not None and self._test.is_another(self._table):
            keep, self.changes = 0.0, self.changes + 1
        self._turn_tables(keep)
        self.turns += 1
        self._rebuild()
        self._aimed()

    def _learn_part(self, part: FinishedWindows) -> None:
        self._table.learn(part)

    def _turn_tables(self, keep: float) -> None:
        self._table.turn(keep=keep)

    def _built(self) -> Learnt:
        return self._table.learnt()

    def _rows(self, types: Int64Array, features: Int64Array | None) -> Int64Array:  # noqa: ARG002
        unseen = len(self._learnt.utilities) - 1
        # As unsigned numbers, so a negative code is a very high one.
        rows = np.minimum(types.astype(np.uint64), np.uint64(unseen))
        return rows.view(np.int64)

    def _rebuild(self) -> None:
        """Build the model, and the tables of pairs and types."""
        self._learnt = self._built()
        utilities = self._learnt.utilities
        self._flat = utilities.ravel()
        # A type that was never seen may have any worth.
        unseen = (utilities == MOST_UTILITY).all(axis=1, keepdims=True)
        self._worths = np.where(unseen, 1.0, self._learnt.rates).ravel()
        self._by_cell = CellTable(utilities)
        sums = np.zeros((len(utilities), utilities.shape[1] + 1), np.int64)
        np.cumsum(utilities, axis=1, out=sums[:, 1:])
        self._sums = sums.ravel()
        self._ranked = self._of_mean_window(sums)
        self._cumulated = cdt_of_partitions(*self._ranked, 1)

    def _of_mean_window(self, sums: Int64Array) -> tuple[Utilities, FloatArray]:
        """Return utilities and expected events by the places of a window of N events.

        Fewer events than cells: each has the mean of several, so these means are cut.
        Some more: a cell has one event more than the next.
        """
        learnt, cells = self._learnt, self._model.cells
        size = max(round(learnt.size), 1)
        positions = np.arange(size)
        first = first_cells(positions, size, cells)
        if size >= cells:
            events = np.bincount(first, minlength=cells)
            return learnt.utilities, learnt.expected * (events * cells / size)
        end = end_cells(positions, size, cells)
        means = np.rint((sums[:, end] - sums[:, first]) / (end - first))
        return means.astype(np.uint8), np.add.reduceat(learnt.expected, first, axis=1)

    def _aimed(self) -> None:
        partitions = 1 if self._amount is None else self._amount.partitions
        if not self._learnt.is_trained:
            self._cut = Cut(np.full((1, LEVELS), self._share), self._share, self._share)
        else:
            if len(self._cumulated) != partitions:
                self._cumulated = cdt_of_partitions(*self._ranked, partitions)
            drop = self._share * self._learnt.size / partitions
            self._cut = cut_of(self._cumulated, drop, how=self._model.cutting)
        self._chances = self._cut.chances.ravel()
        self._cut_table = CutTable(self._by_cell, self._cut.chances)

    def chances(  # noqa: D102
        self,
        types: Int64Array,
        positions: Int64Array,
        *,
        sizes: Sizes,
        features: Int64Array | None,
    ) -> FloatArray:
        # Two look-ups: the pair's utility, and its partition.
        utilities = self.utilities(types, positions, sizes=sizes, features=features)
        partitions = len(self._cut.chances)
        if partitions > 1:
            inside = within(positions, sizes)
            utilities = utilities + (inside * partitions // sizes) * LEVELS
        return self._chances.take(utilities)

    def chances_at(self, shares: Sequence[float]) -> FloatArray:
        """Return the chance of each utility if such shares of a window are dropped.

        Args:
            shares: the shares of its events, alike in each part.

        Returns:
            shape (shares, 101).
        """
        cumulated, size = cdt_of_partitions(*self._ranked, 1), self._learnt.size
        how = self._model.cutting
        return np.vstack([cut_of(cumulated, share * size, how=how).chances for share in shares])

    def utilities(
        self,
        types: Int64Array,
        positions: Int64Array,
        *,
        sizes: Sizes,
        features: Int64Array | None,
    ) -> Int64Array:
        """Return the utility of each pair."""
        inside, cells = within(positions, sizes), self._model.cells
        rows = self._rows(types, features)
        first = first_cells(inside, sizes, cells)
        if np.min(sizes) >= cells:
            return self._flat.take(rows * cells + first).astype(np.int64)
        end = end_cells(inside, sizes, cells)
        row = rows * (cells + 1)
        sums = self._sums.take(row + end) - self._sums.take(row + first)
        mean: Int64Array = np.rint(sums / (end - first)).astype(np.int64)
        return mean

    def worths(  # noqa: D102
        self,
        types: Int64Array,
        positions: Int64Array,
        *,
        sizes: Sizes,
        features: Int64Array | None = None,
    ) -> FloatArray | None:
        if not self._learnt.is_trained:
            return None
        cells = self._model.cells
        first = first_cells(within(positions, sizes), sizes, cells)
        return self._worths.take(self._rows(types, features) * cells + first)

    def bounds(  # noqa: D102
        self, types: Int64Array, features: Int64Array | None
    ) -> tuple[FloatArray, FloatArray]:
        rows = self._rows(types, features)
        return self._cut_table.low.take(rows), self._cut_table.high.take(rows)

    def drop_spans(  # noqa: D102
        self,
        types: Int64Array,
        spans: Spans,
        *,
        events: Int64Array,
        features: Int64Array | None = None,
    ) -> Dropped:
        # Stretch by stretch where that is quicker.
        rows, table = self._rows(types, features), self._cut_table
        surely, open_ = table.settled(rows, events, self.drawn)
        pieces = None
        if self.is_trained and len(open_):
            pieces = table.pieces(spans, share=len(open_) / len(types))
        if pieces is None:
            return self._of_open(types, spans, events, features, surely, open_)
        return table.dropped(
            rows, pieces, surely=surely, open_=open_, events=events, drawn=self.drawn
        )

    def derive(self) -> None:  # noqa: D102
        self._rebuild()
        super().derive()

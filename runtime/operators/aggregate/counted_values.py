"""Values of each cell, each with the number of its rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.nullable import Nullable, valid_of
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulators import FoldAccumulator
from slackwater.runtime.operators.aggregate.runs import Runs
from slackwater.runtime.operators.ground.arrays import GrowableArray
from slackwater.runtime.operators.ground.codes import IntCodes
from slackwater.runtime.operators.ground.keys import KeyIndex


class Distinct(NamedTuple):
    """Numbers of values that differ."""

    counts: Int64Array


class CountedValues:
    """CountedValues holds the values of each cell without nulls, and how many rows have each.

    A value of a cell is a pair, of a cell and the code of the value.

    Args:
        column: the column of the values.
    """

    STATE = Fields(
        "_values",
        Field("_pair_cells", of=OWNER),
        Field("_pair_values", by="_pair_cells"),
        Field("_pair_counts", by="_pair_cells"),
        Field("_distinct", by=OWNER),
    )

    def __init__(self, column: str) -> None:
        self._column = column
        self._values = KeyIndex(1)
        self._pair_cells = GrowableArray(np.int64, is_log=True)
        self._pair_values = GrowableArray(np.int64, is_log=True)
        self._pair_counts = FoldAccumulator(np.add, np.int64, 0, lambda _, cells: (cells, 1))
        self._distinct = FoldAccumulator(np.add, np.int64, 0, lambda _, cells: (cells, 1))
        self._pairs = IntCodes()

    def running(self, batch: Batch, places: Int64Array, runs: Runs, size: int) -> Distinct:
        """Take rows, and return the number of values after each entry.

        See `RunningAccumulator`.
        """
        column = batch.columns[self._column]
        if (valid := valid_of(column)) is not None:
            there = valid.nonzero()[0]
            column, places = column.take(there), places.take(there)
        if not len(places):
            return Distinct(self._distinct.run(places, places, runs, size))
        cells = np.empty(runs.size, dtype=np.int64)
        cells[:] = runs.cells.repeat(runs.lengths)
        cells = cells.take(runs.at.take(places))
        pairs = self._pairs_of(cells, column)
        of_pairs = Runs.of(pairs)
        counts = self._pair_counts.run(
            np.arange(len(pairs)), np.ones(len(pairs), np.int64), of_pairs, len(self._pairs)
        )
        is_new = counts.take(of_pairs.at) == 1
        return Distinct(self._distinct.run(places, is_new, runs, size))

    def _pairs_of(self, cells: Int64Array, column: object) -> Int64Array:
        values = column.values if isinstance(column, Nullable) else column
        codes = self._values.codes([values], len(cells))
        known = len(self._pairs)
        pairs = self._pairs.codes(cells << 32 | codes)
        both = self._pairs.values[known:]
        self._pair_cells.append(both >> 32)
        self._pair_values.append(both & 0xFFFFFFFF)
        return pairs

    def derive(self) -> None:  # noqa: D102
        used = np.unique(self._pair_values.values)
        if len(self._values) > 2 * len(used):
            moved = self._values.keep(used)
            self._pair_values.replace(moved.take(self._pair_values.values))
        self._pairs.replace(self._pair_cells.values << 32 | self._pair_values.values)

"""Aggregates of ranges of rows that lie side by side, without a copy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slackwater.runtime.model import BoolArray, Int64Array


class Ranges(NamedTuple):
    """Ranges of rows, which may overlap.

    Attributes:
        starts: shape (ranges,), the first row of each; they ascend.
        stops: shape (ranges,), the row after its last.
    """

    starts: Int64Array
    stops: Int64Array

    @property
    def counts(self) -> Int64Array:
        """Shape (ranges,), the number of rows of each."""
        return self.stops - self.starts

    def among(self, places: Int64Array) -> Ranges:
        """Return the ranges among some rows only, whose places ascend."""
        return Ranges(places.searchsorted(self.starts), places.searchsorted(self.stops))

    def reduced(self, ufunc: np.ufunc, values: npt.NDArray[Any], identity: Any) -> Any:
        """Return `ufunc` over the values of each range, shape (ranges,); else the identity."""
        bounds = np.empty(2 * len(self.starts), dtype=np.int64)
        bounds[::2], bounds[1::2] = self.starts, self.stops
        padded = np.append(values, np.array(identity, dtype=values.dtype))  # a range may end there
        made = ufunc.reduceat(padded, bounds)[::2].astype(values.dtype, copy=False)
        is_empty: BoolArray = self.starts >= self.stops
        if is_empty.any():
            made[is_empty] = identity
        return made

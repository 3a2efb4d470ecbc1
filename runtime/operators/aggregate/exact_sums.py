"""Exact sums of floats, from which rows can be taken out.

```
rows of a cell     1.0   1e300   NaN   −NaN   −1e300
sum that stays     1     1+1e300                1
NaNs                             1     0
sum that leaves    1.0   1e300   NaN   1e300  1.0
```

A float is a whole number of 2**-1074. So a sum is a whole number, too, and is rounded only as it
leaves: rows that are taken out leave no trace.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulators import Values, signs_of
from slackwater.runtime.operators.aggregate.runs import Runs
from slackwater.runtime.operators.aggregate.whole_sum import SumAccumulator, Sums

_PLACES = 1074
_UNITS_OF_1 = 1 << _PLACES


class _Exact(NamedTuple):
    """A sum in units of 2**-1074, and numbers of other values."""

    units: int
    nans: int
    above: int
    below: int

    def plus(self, value: float, sign: int) -> _Exact:
        """Return the sum with a value, or without it where the sign is −1."""
        units, nans, above, below = self
        if math.isfinite(value):
            digits, divisor = value.as_integer_ratio()
            shift = _PLACES + 1 - divisor.bit_length()
            return _Exact(units + (sign * digits << shift), nans, above, below)
        if math.isnan(value):
            return _Exact(units, nans + sign, above, below)
        if value > 0:
            return _Exact(units, nans, above + sign, below)
        return _Exact(units, nans, above, below + sign)

    def rounded(self) -> float:
        """Return the float nearest to the sum."""
        units, nans, above, below = self
        if nans > 0 or (above > 0 and below > 0):
            return math.nan
        if above > 0 or below > 0:
            return math.inf if above > 0 else -math.inf
        try:
            return units / _UNITS_OF_1
        except OverflowError:
            return math.inf if units > 0 else -math.inf


_NOTHING = _Exact(0, 0, 0, 0)


class ExactSums(SumAccumulator):
    """A sum per cell that does not depend on rows taken out.

    Args:
        values: returns the values of a batch.
    """

    STATE = SumAccumulator.STATE + Fields(Field("_exact", by=OWNER))

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self._exact: dict[int, tuple[int, ...]] = {}  # {cell: its sum, unless it is 0}

    def running(self, batch: Batch, places: Int64Array, runs: Runs, size: int) -> Sums:
        """Take rows, and return the sum after each entry; see `RunningAccumulator`."""
        own, values = self._of_batch(batch, places)
        if values.dtype.kind != "f":
            return super().running(batch, places, runs, size)
        signs = signs_of(batch)
        by = np.ones(len(own), np.int8) if signs is None else signs
        return self._floats(runs.at.take(own), values, by, runs)

    def _floats(
        self,
        at: Int64Array,
        values: npt.NDArray[np.floating],
        signs: npt.NDArray[np.int8],
        runs: Runs,
    ) -> npt.NDArray[np.float64]:
        """Return the sum after each entry; `at` are those of the values."""
        changes = dict(
            zip(at.tolist(), zip(values.tolist(), signs.tolist(), strict=True), strict=True)
        )
        entries = np.empty(runs.size)
        fresh = [False] * len(runs.cells) if runs.fresh is None else runs.fresh.tolist()
        bounds = (runs.cells.tolist(), runs.starts.tolist(), (runs.ends + 1).tolist())
        for cell, start, stop, is_fresh in zip(*bounds, fresh, strict=True):
            exact = _NOTHING if is_fresh else _Exact(*self._exact.pop(cell, _NOTHING))
            result = exact.rounded()
            for entry in range(start, stop):
                if entry in changes:
                    exact = exact.plus(*changes[entry])
                    result = exact.rounded()
                entries[entry] = result
            if exact != _NOTHING:
                self._exact[cell] = tuple(exact)
            else:
                self._exact.pop(cell, None)
        return entries

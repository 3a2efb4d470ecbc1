"""Evidence that one model loses fewer matches than another, beyond chance.

```
matches that neither model has learnt from    lost by the plain one − lost by the richer one
32 windows, a block                           their sum, a draw: D
all blocks so far, older ones count less      z = ΣD / √ΣD²
z ≥ 2.5  the richer one is used from now on     z < 1  no longer
```

Windows overlap, so one event is in matches of many, and those are not independent draws: blocks
    are,
nearly, unless an event is in more windows than a block has. z² is at most the number of blocks, so
nothing is believed before seven of them, however large a difference is.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.draws import FloatArray

BLOCK = 32
"""Windows."""
BEGIN, END = 2.5, 1.0
_KEEP = 0.875
"""The share of older blocks that is kept when the models are rebuilt: they were of other models."""
_PARTS = 1 << 10
"""Chances are counted in so many parts: sums do not depend on how windows came."""


class Evidence:
    """Evidence, for several amounts dropped.

    Args:
        amounts: the number of amounts.

    Attributes:
        is_better: shape (amounts,), where the richer model is to be used.
    """

    STATE = Fields("is_better", "_windows", "_block", "_sums", "_matches", "_lost")

    def __init__(self, amounts: int) -> None:
        self.is_better: BoolArray = np.zeros(amounts, np.bool_)
        self._windows = 0  # windows of the block
        self._block: Int64Array = np.zeros(amounts, np.int64)
        self._sums: FloatArray = np.zeros((2, amounts))  # sums of D and D²
        self._matches = 0.0
        self._lost: FloatArray = np.zeros((2, amounts))  # lost by the plain and the richer model

    @property
    def left(self) -> int:
        """Windows that are still missing of this block."""
        return BLOCK - self._windows

    @property
    def matches(self) -> float:
        """Matches that were looked at, older ones counting less."""
        return self._matches

    def lost_shares(self, amount: int) -> tuple[float, float] | None:
        """Return the share of matches that each model would lose; None if it has none."""
        if not self._matches:
            return None
        plain, richer = (self._lost[:, amount] / (self._matches * _PARTS)).tolist()
        return plain, richer

    def add(self, lost: FloatArray, windows: int) -> None:
        """Count windows of this block.

        Args:
            lost: shape (2, amounts, matches): the chance that each model loses each match.
            windows: number of windows, no more than are left.
        """
        parts = np.rint(lost * _PARTS).astype(np.int64).sum(axis=2)
        self._lost += parts
        self._matches += lost.shape[2]
        self._block += parts[0] - parts[1]
        self._windows += windows
        if self._windows >= BLOCK:
            self._sums += [self._block, self._block**2]
            self._windows, self._block = 0, np.zeros_like(self._block)
            self._decide()

    def _decide(self) -> None:
        total, squares = self._sums
        z = np.divide(total, np.sqrt(squares), out=np.zeros_like(total), where=squares > 0)
        self.is_better = np.where(self.is_better, z >= END, z >= BEGIN - 1e-9)

    def fade(self) -> None:
        """Reduce the weight of older blocks: the models have changed."""
        self._sums *= _KEEP
        self._lost *= _KEEP
        self._matches *= _KEEP

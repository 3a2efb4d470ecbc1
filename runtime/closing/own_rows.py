"""The last rows of each type, kept over all fits: what is known of a type that seldom comes.

```
fits         |------ T ------|------ T ------|------ T ------|
type a       aaaaaaaaaaaaaaaa aaaaaaaaaaaaaaa aaaaaaaaaaaaaaa   each fit has enough of its own
type b             b       b      b        b        b     b     no fit has: the last rows of all
```
The rows of other types say nothing of one that comes later than these, or seldom.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.state import Fields

KEPT = 128
"""Rows of a type that are kept."""
_NOTHING = np.empty(0, dtype=np.int64)


class OwnRows:
    """The last gaps and delays of each type, and which row was its last."""

    STATE = Fields("_last", "_gaps", "_delays")

    def __init__(self) -> None:
        self._last = _NOTHING  # (types,), its number among all rows, from 1 on; 0: none
        self._gaps: list[Int64Array] = []
        self._delays: list[Int64Array] = []

    @property
    def types(self) -> int:
        """How many types there have been."""
        return len(self._last)

    def take(
        self, types: Int64Array, gaps: Int64Array, delays: Int64Array, added: int
    ) -> list[Int64Array]:
        """Take the rows of a fit, of which some may have been in the one before.

        Args:
            types: shape (rows,), of the last rows.
            gaps: shape (rows,).
            delays: shape (rows,).
            added: how many rows there have been so far, with these.

        Returns:
            The places of the rows of each type.
        """
        more = int(types.max(initial=-1)) + 1 - self.types
        if more > 0:
            self._last = np.append(self._last, np.zeros(more, dtype=np.int64))
            self._gaps += [_NOTHING] * more
            self._delays += [_NOTHING] * more
        order = np.argsort(types, kind="stable")
        bounds = np.searchsorted(types[order], np.arange(self.types + 1))
        places = [order[a:b] for a, b in pairwise(bounds.tolist())]
        for one in np.flatnonzero(np.diff(bounds)).tolist():
            number = added - len(types) + 1 + places[one]
            new = places[one][number > self._last[one]][-KEPT:]
            self._gaps[one] = np.concatenate([self._gaps[one], gaps[new]])[-KEPT:]
            self._delays[one] = np.concatenate([self._delays[one], delays[new]])[-KEPT:]
            self._last[one] = number[-1]
        return places

    def of(self, kind: int) -> tuple[Int64Array, Int64Array]:
        """Return the gaps and delays of a type."""
        return self._gaps[kind], self._delays[kind]

    def silent(self, kind: int, added: int) -> int:
        """Return how many rows of others there have been since its last."""
        return added - int(self._last[kind])

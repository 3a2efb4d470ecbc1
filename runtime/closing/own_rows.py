"""Last rows of each type, kept over all fits for types that seldom come.

```
fits         |------ T ------|------ T ------|------ T ------|
type a       aaaaaaaaaaaaaaaa aaaaaaaaaaaaaaa aaaaaaaaaaaaaaa   each fit has enough of its own
type b             b       b      b        b        b     b     no fit has: the last rows of all
```
Rows of other types say nothing of a type that comes later than they do, or seldom.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.state import Fields

KEPT = 128
"""Most rows kept of a type."""
_NOTHING = np.empty(0, dtype=np.int64)


class OwnRows:
    """Last gaps and delays of each type, and the number of its last row."""

    STATE = Fields("_last", "_gaps", "_delays")

    def __init__(self) -> None:
        self._last = _NOTHING  # (types,), its number among all rows, from 1 on; 0 before any
        self._gaps: list[Int64Array] = []
        self._delays: list[Int64Array] = []

    @property
    def types(self) -> int:
        """Number of types so far."""
        return len(self._last)

    def take(
        self, types: Int64Array, gaps: Int64Array, delays: Int64Array, added: int
    ) -> list[Int64Array]:
        """Add the rows of a fit; some may have been in the fit before.

        Args:
            types: shape (rows,), the types of the last rows.
            gaps: shape (rows,).
            delays: shape (rows,).
            added: the number of rows so far, with these.

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
        for kind in np.flatnonzero(np.diff(bounds)).tolist():
            number = added - len(types) + 1 + places[kind]
            new = places[kind][number > self._last[kind]][-KEPT:]
            self._gaps[kind] = np.concatenate([self._gaps[kind], gaps[new]])[-KEPT:]
            self._delays[kind] = np.concatenate([self._delays[kind], delays[new]])[-KEPT:]
            self._last[kind] = number[-1]
        return places

    def of(self, kind: int) -> tuple[Int64Array, Int64Array]:
        """Return the gaps and delays of a type."""
        return self._gaps[kind], self._delays[kind]

    def silent(self, kind: int, added: int) -> int:
        """Return how many rows of other types came since its last row."""
        return added - int(self._last[kind])

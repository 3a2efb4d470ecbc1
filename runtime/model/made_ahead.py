"""Arrow record batches of a row or two, cut out of a prepared one.

```
made ahead   [ r0 | r1 r2 | r3 |    |    | … ]     128 rows of zeros, one array for each column
handed out     ─    ─────   ─                      written, then sliced: never written again
```

To make a record batch takes a call into Arrow for each column, and at the speed of the clock all
that code is cold each time. To put numbers in their place and to slice once takes a fifth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.model.batch import Batch

__all__ = ["FEW_ROWS", "RowsMadeAhead"]

FEW_ROWS = 8
"""Up to here it is quicker."""
_MADE = 128
"""Rows that are made at once: who keeps one row keeps the memory of so many, 1 KB a column."""


class RowsMadeAhead:
    """Cuts rows of numbers out of record batches that it makes ahead.

    Args:
        schema: schema of the rows; numbers and times only, at least one column.
        dtypes: NumPy type of each column, that of Arrow's values in memory.
    """

    def __init__(self, schema: pa.Schema, dtypes: Sequence[np.dtype[Any]]) -> None:
        self._schema, self._dtypes = schema, dtypes
        self._rooms: list[tuple[str, npt.NDArray[Any], np.dtype[Any]]] = []
        self._made: pa.RecordBatch | None = None
        self._next = _MADE  # place of the next row

    def of(self, batch: Batch) -> pa.RecordBatch | None:
        """Return columns of 1 to `FEW_ROWS` rows; None if a type differs."""
        at = self._next
        stop = at + len(batch.event_time_ns)
        if stop > _MADE:
            at, stop = 0, stop - at
            self._make()
        columns = batch.columns
        for name, room, dtype in self._rooms:
            values = columns[name]
            if not isinstance(values, np.ndarray) or values.dtype != dtype:
                return None
            room[at:stop] = values
        self._next = stop
        assert self._made is not None
        return self._made.slice(at, stop - at)

    def _make(self) -> None:
        rooms = [np.zeros(_MADE, dtype) for dtype in self._dtypes]
        arrays = [
            pa.Array.from_buffers(field.type, _MADE, [None, pa.py_buffer(room)])
            for field, room in zip(self._schema, rooms, strict=True)
        ]
        self._rooms = list(zip(self._schema.names, rooms, self._dtypes, strict=True))
        self._made = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._next = 0

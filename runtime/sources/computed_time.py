"""Event times that are an expression, as one more column of each block.

```
ts (text)            event_time=col("ts").str.to_time("%d.%m.%Y %H:%M", zone="Europe/Berlin")
29.03.2026 01:15  ─▶ 2026-03-29 00:15 UTC
yesterday         ─▶ refused by its row; or null where bad rows are skipped or diverted
```

The column is added to each block as it is read, under the expression's own text. All that is said
of a column of event times then holds for it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.expressions.nulls import refused_rows, spread
from slackwater.runtime.model import Batch, Column
from slackwater.runtime.model.schema import NullError, column_to_arrow
from slackwater.runtime.sources.columns import read_columns
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["ComputedTime", "computed_time_of"]


def computed_time_of(
    source: str, spec: SourceSpec, schema: pa.Schema, *, refuses: bool
) -> ComputedTime | None:
    """Return the computation of a source's event times; None if a column has them."""
    if not isinstance(spec.event_time, Expr):
        return None
    return ComputedTime(source, spec.event_time, schema, refuses=refuses)


class ComputedTime:
    """Computes the event times of a source's blocks.

    Args:
        source: its name, for errors.
        expression: expression of the event time.
        schema: inside schema of its input.
        refuses: whether a row without a value ends the job; else its time is null.
    """

    def __init__(self, source: str, expression: Expr, schema: pa.Schema, *, refuses: bool) -> None:
        self._source, self._refuses = source, refuses
        self._name = str(expression)
        self._type = expression.type_in(schema, step=source)
        self._expression = expression.bound(schema)
        read = expression.columns()
        self._schema = pa.schema([field for field in schema if field.name in read])

    def added(self, block: pa.RecordBatch, *, row: int) -> pa.RecordBatch:
        """Return a block with its event times as one more column.

        Args:
            block: rows as the reader gave them.
            row: how many rows of the input came before it, for errors.

        Raises:
            SchemaError: a column is missing, or is of another type.
            NullError: a row has no event time, and such rows are refused.
        """
        columns = read_columns(self._source, block, self._schema, row=row)
        nowhere = np.zeros(len(block), np.int64)
        batch = Batch(event_time_ns=nowhere, stimulus_time_ns=nowhere, columns=columns)
        try:
            times = self._expression.evaluate(batch)
        except OperatorError as problem:
            if self._refuses:
                place = row + (problem.place or 0)
                raise NullError(
                    f"source {self._source!r}: event time {self._name} of row {place} (counted "
                    f"from 0) cannot be computed: {problem}; or omit such rows, on_bad='skip', or "
                    "take them as a stream, on_bad='divert'",
                    place=place,
                ) from None
            times = self._of_good(batch)
        column = column_to_arrow(times, self._type)
        return block.append_column(pa.field(self._name, self._type), column)

    def _of_good(self, batch: Batch) -> Column:
        """Return the values, null where a row has none."""
        evaluate, rows = self._expression.evaluate, len(batch)
        good = np.ones(rows, np.bool_)
        good[refused_rows(lambda a, b: evaluate(batch.slice(a, b)), rows, OperatorError)] = False
        places = good.nonzero()[0]
        return spread(evaluate(batch.take(places)), good, places)

"""An explode makes a row of each element of a list."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from slackwater.runtime.expressions.nested_methods import lists_of
from slackwater.runtime.model import Batch
from slackwater.runtime.model.schema import column_of_arrow
from slackwater.runtime.operators.explode.step import ExplodeStep


class ExplodeMachine:
    """An explode repeats a row for each element of its list, or once, with null.

    ```
    id  readings        id  readings
    1   [7, 9]     ─▶   1   7
    2   []              1   9
                        2   null
    ```
    """

    row_tests = None
    failed = None

    def __init__(self, step: ExplodeStep) -> None:
        self._column = step.column

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        values, starts, ends = lists_of(batch.columns[self._column])
        sizes = ends - starts
        repeats = np.maximum(sizes, 1)
        rows = np.repeat(np.arange(len(batch)), repeats)
        first = np.cumsum(repeats) - repeats
        places = np.repeat(starts, repeats) + (np.arange(len(rows)) - np.repeat(first, repeats))
        elements = values.take(pa.array(places, mask=np.repeat(sizes == 0, repeats)))
        exploded = batch.take(rows)
        return Batch.like(exploded, {**exploded.columns, self._column: column_of_arrow(elements)})

"""`map_rows` calls the user's function with a row at a time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import Batch, Columns, concat_batches
from slackwater.runtime.model.copies import copied_value
from slackwater.runtime.operators.ground.failed_rows import failed_rows
from slackwater.runtime.operators.ground.fit import fitted
from slackwater.runtime.operators.ground.user_code import (
    called,
    check_names,
    given,
    rows_of,
    sample_of,
)
from slackwater.runtime.operators.map_rows.step import MapRowsStep
from slackwater.runtime.shown import a_kind


def _row_read(returned: Any) -> Any:
    """Return a copy of a row: the function may fill it again."""
    is_row = type(returned) is dict or isinstance(returned, Mapping)
    return copied_value(returned) if is_row else returned


class MapRowsMachine:
    """The machine calls the user's function with each row, a dict; None drops the row."""

    row_tests = None

    def __init__(self, step: MapRowsStep) -> None:
        self._step = step
        self.failed = failed_rows(step.on_error)

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        if self.failed is None:
            return self._mapped(batch)
        units = self._step.units
        each = [batch.slice(place, place + 1) for place in range(len(batch))]
        done = [one for row in each if len(one := self.failed.applied(self._mapped, row, units))]
        return concat_batches(done) if done else batch.slice(0, 0)

    def _mapped(self, batch: Batch) -> Batch:
        step, names = self._step, self._step.schema.names
        batch = given(batch, step.units, step=step.name)
        kept: list[int] = []
        rows_out: list[list[Any]] = []
        for place, row in enumerate(rows_of(batch, step=step.name)):
            about = partial(sample_of, batch, place, place + 1)
            returned = called(step.function, row, step=step.name, shown=about, read=_row_read)
            if returned is None:
                continue
            if not isinstance(returned, Mapping):
                raise OperatorError(
                    f"step {step.name!r}: its function returned {a_kind(returned)}; it "
                    f"must return a dict of {', '.join(names)}, or None\n{about()}"
                )
            check_names(returned, names, step=step.name, shown=about)
            kept.append(place)
            rows_out.append([returned[name] for name in names])
        rows = batch.take(np.array(kept, dtype=np.int64))
        columns: Columns = {
            field.name: fitted(
                [row[at] for row in rows_out],
                field.type,
                name=field.name,
                step=step.name,
                rows=rows,
            )
            for at, field in enumerate(step.schema)
        }
        return Batch.like(rows, columns)

"""`map_batches` calls the user's function with the columns of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import Batch, BoolArray, Column, Columns
from slackwater.runtime.model.copies import copied_column
from slackwater.runtime.model.nullable import Nullable, nulled, without_mask
from slackwater.runtime.operators.ground.failed_rows import failed_rows
from slackwater.runtime.operators.ground.fit import fitted
from slackwater.runtime.operators.ground.user_code import called, check_names, given, sample_of
from slackwater.runtime.operators.map_batches.step import MapBatchesStep
from slackwater.runtime.shown import a_kind, shown


class MapBatchesMachine:
    """The machine calls the user's function with columns, for as many rows.

    The arrays it is given are read-only: other steps may see the same ones.
    """

    row_tests = None

    def __init__(self, step: MapBatchesStep) -> None:
        self._step = step
        self.failed = failed_rows(step.on_error)

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        if self.failed is None:
            return self._mapped(batch)
        return self.failed.applied(self._mapped, batch, self._step.units)

    def _mapped(self, batch: Batch) -> Batch:
        batch = given(batch, self._step.units, step=self._step.name)
        columns_in = {name: _given(column) for name, column in batch.columns.items()}
        ours = tuple(columns_in.values())
        returned = called(
            self._step.function,
            columns_in,
            step=self._step.name,
            shown=partial(sample_of, batch),
            read=partial(_columns_read, ours=ours),
        )
        self._check(returned, batch)
        columns: Columns = {
            field.name: fitted(
                returned[field.name],
                field.type,
                name=field.name,
                step=self._step.name,
                rows=batch,
            )
            for field in self._step.schema
        }
        if (was_null := _null_floats(batch.columns)) is not None:
            columns = {name: _null_again(column, was_null) for name, column in columns.items()}
        return Batch.like(batch, columns)

    def _check(self, returned: object, batch: Batch) -> None:
        names = self._step.schema.names
        if not isinstance(returned, Mapping):
            raise OperatorError(
                f"step {self._step.name!r}: its function returned {a_kind(returned)}; "
                f"it must return a dict of columns: {', '.join(names)}\n{sample_of(batch)}"
            )
        check_names(returned, names, step=self._step.name, shown=partial(sample_of, batch))
        for name in names:
            values = returned[name]
            if not isinstance(values, Sized) or isinstance(values, str) or _is_scalar(values):
                raise OperatorError(
                    f"step {self._step.name!r}: its function returned {shown(values)} as column "
                    f"{name!r}; a column is an array with one value for each row, such as "
                    f"np.full(rows, value)\n{sample_of(batch)}"
                )
            if len(values) != len(batch):
                raise OperatorError(
                    f"step {self._step.name!r}: its function returned {len(values)} values in "
                    f"column {name!r} for {len(batch)} rows; it must return one for each row "
                    f"(drop rows with filter)\n{sample_of(batch)}"
                )


def _columns_read(returned: Any, *, ours: tuple[Any, ...]) -> Any:
    """Return columns that the function cannot fill again; `ours` are those that it was given."""
    if not isinstance(returned, Mapping):
        return returned
    return {
        name: values if any(values is own for own in ours) else _column_read(values)
        for name, values in returned.items()
    }


def _column_read(values: Any) -> Any:
    if isinstance(values, np.ndarray | pa.Array | pa.ChunkedArray):
        return copied_column(values)
    kind = type(values)
    is_known = isinstance(values, list | tuple | str | bytes | Mapping)
    if is_known or not hasattr(kind, "__len__"):
        return values
    is_array = hasattr(kind, "__array__") and not hasattr(kind, "__iter__")
    return np.array(values) if is_array else list(values)


def _is_scalar(values: object) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 0


def _given(column: Column) -> Any:
    """Return a column as the function gets it: NumPy's, or Arrow's.

    Nulls of floats are NaN, and other numbers with nulls are Arrow's. NumPy's masked arrays would
    mask 1 / 0 too, but only where another row is null.
    """
    column = without_mask(column)
    if isinstance(column, Nullable) and column.dtype.kind == "f":
        column = np.where(column.valid, column.values, column.dtype.type(np.nan))
    if isinstance(column, Nullable):
        return column.to_arrow(pa.from_numpy_dtype(column.dtype))
    return _read_only(column) if isinstance(column, np.ndarray) else column


def _null_floats(columns: Columns) -> BoolArray | None:
    """Return the rows with a null that was given as NaN; None if none."""
    masks = [
        ~column.valid
        for column in columns.values()
        if isinstance(column, Nullable) and column.dtype.kind == "f"
    ]
    return reduce(np.logical_or, masks) if masks else None


def _null_again(column: Column, was_null: BoolArray) -> Column:
    """Return a column whose NaN is null where NaN had been given for a null."""
    values = column.values if isinstance(column, Nullable) else column
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return column
    valid = ~(was_null & np.isnan(values))
    if isinstance(column, Nullable):
        valid &= column.valid
    return nulled(values, valid)


def _read_only(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    values = values.view()
    values.flags.writeable = False
    return values

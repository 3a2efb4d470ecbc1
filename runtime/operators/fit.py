"""Makes what a user's function returned into columns of the types that its step promised."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from runtime.errors import OperatorError, SchemaError
from runtime.flow.result_types import TYPES
from runtime.model import Column
from runtime.model.schema import column_from_arrow


def fitted(values: Any, to: pa.DataType, *, name: str, step: str) -> Column:
    """Return values (an array, an Arrow array or a sequence) as an inside column.

    Numbers change type where no value changes: int64 to int8 if all fit, 2.0 to 2. Only text
    and floats may have nulls. Times are whole nanoseconds, or datetimes.

    Raises:
        OperatorError: they do not fit; names the step and the column.
    """
    try:
        if isinstance(values, np.ndarray) and values.dtype.kind in "biufM":
            return _as_numbers(values, to)
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if not isinstance(values, pa.Array):
            values = pa.array(values, from_pandas=False, type=to)
        return column_from_arrow(name, values, to, who=f"step {step!r}")
    except (pa.ArrowException, SchemaError, TypeError, ValueError, OverflowError) as problem:
        wanted = next((known for known, kind in TYPES.items() if kind == to), to)
        raise OperatorError(
            f"step {step!r}: column {name!r} should be {wanted}, but its function returned "
            f"{_described(values)}: {problem}"
        ) from problem


def _as_numbers(values: npt.NDArray[Any], to: pa.DataType) -> npt.NDArray[Any]:
    if pa.types.is_string(to):
        raise ValueError("turn the numbers into text first, such as [str(x) for x in …]")
    if values.ndim != 1:
        raise ValueError(f"one value a row is needed, not an array of shape {values.shape}")
    if values.dtype.kind == "M":
        if not pa.types.is_timestamp(to):
            raise ValueError("times are not numbers; take nanoseconds: values.astype('int64')")
        if np.isnat(values).any():
            raise ValueError("a time may not be null (NaT)")
        return values.astype("datetime64[ns]").view(np.int64)
    dtype = np.dtype(np.int64 if pa.types.is_timestamp(to) else to.to_pandas_dtype())
    if values.dtype == dtype:
        return values
    if dtype.kind == "b":
        raise ValueError("compare to get true and false: values != 0")
    with np.errstate(invalid="ignore", over="ignore"):
        changed = values.astype(dtype)
        if dtype.kind != "f" and not np.array_equal(changed, values):
            raise ValueError("some values would change; round or clip them first")
    return changed


def _described(values: Any) -> str:
    kind = values.dtype if isinstance(values, np.ndarray) else getattr(values, "type", None)
    return type(values).__name__ + (f" of {kind}" if kind is not None else "")

"""Tables and frames of any library, and {column: values}, as tables of Arrow.

Polars and others keep text and bytes as views; they are plain text and bytes here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model.copies import copied_block, copied_table
from slackwater.runtime.model.schema import with_parts
from slackwater.runtime.model.unset import with_nulls
from slackwater.runtime.shown import shown, text_of

__all__ = ["ArrowArray", "ArrowStream", "plain_table", "without_views"]


class ArrowStream(Protocol):
    """Rows in blocks that Arrow can take: a table, a frame, a reader."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a PyCapsule of Arrow's C stream interface."""
        ...


class ArrowArray(Protocol):
    """Rows of one block that Arrow can take."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return schema and rows as PyCapsules of Arrow's C data interface."""
        ...


def plain_table(data: Any, *, who: str = "table") -> pa.Table:
    """Return copies of the rows of a table, a frame, or {column: values}, without views.

    Args:
        data: table, frame or columns, as a user gave them; a reader is read to its end.
        who: words for the table at the start of errors.

    Raises:
        SchemaError: columns of different lengths, values without one type, or no table.
    """
    try:
        # A frame of pandas has columns as a dict has, and NaN is null there.
        has_columns = hasattr(type(data), "items")
        if has_columns:
            rows = copied_table(pa.table(_columns(data, who=who)))
        else:
            rows = _arrow_table(data, who=who)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
        raise SchemaError(
            f"{who}: {text_of(problem)}; every column needs as many values as the others, of one "
            "type"
        ) from problem
    schema = without_views(rows.schema)
    # Whole: Arrow casts no slice of lists of nulls.
    return rows if schema == rows.schema else rows.cast(schema)


def _arrow_table(data: Any, *, who: str) -> pa.Table:
    if isinstance(data, pa.Table):
        return copied_table(data)
    kind = type(data).__qualname__
    if not (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")):
        raise SchemaError(
            f"{who}: {kind} is not a table; pass {{column: values}}, an Arrow table, or a frame (a "
            "lazy one: .collect() it; a dataset of Ray: sw.ray_dataset(it))"
        )
    schema = getattr(data, "schema", None)  # of Polars, whose objects Arrow has as addresses
    types = schema.items() if isinstance(schema, Mapping) else ()
    objects = [name for name, of in types if str(of) == "Object"]
    if objects:
        raise SchemaError(
            f"{who}: column {objects[0]!r} has Python's objects, which do not travel; cast it, or "
            f"drop it: frame.drop({objects[0]!r})"
        )
    try:
        if not hasattr(data, "__arrow_c_stream__"):
            return copied_table(pa.table(data))
        with pa.RecordBatchReader.from_stream(data) as reader:
            # It may fill the same memory again for its next block.
            return pa.Table.from_batches(map(copied_block, reader), reader.schema)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise SchemaError(
            f"{who}: Arrow cannot take the rows of a {kind}: {text_of(problem)}; pass a frame with "
            "named columns, and cast types that Arrow lacks"
        ) from problem


def without_views(schema: pa.Schema) -> pa.Schema:
    """Return a schema with plain types for views, in lists and structs too."""
    return pa.schema([field.with_type(_type(field.type)) for field in schema], schema.metadata)


def _type(kind: pa.DataType) -> pa.DataType:
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind)
    if plain is not None:
        return plain
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _type(kind.value_type), kind.ordered)
    return with_parts(kind, _type)


def _columns(data: Any, *, who: str) -> dict[str, Any]:
    """Return columns that Arrow takes; an error names the column, which Arrow's does not.

    Raises:
        SchemaError: whole numbers beyond 64 bits, values of several types, or no UTF-8 text.
    """
    names = list(data)
    for name in names:
        if not isinstance(name, str):
            raise SchemaError(f"{who}: column name {name!r} is not text; write it as text")
        if names.count(name) > 1:  # from a pandas frame
            raise SchemaError(
                f"{who}: column name {name!r} occurs {names.count(name)} times; rename all but one"
            )
    columns = {}
    for name, values in dict(data).items():
        try:
            columns[name] = _array(values)
        except (pa.ArrowException, OverflowError, UnicodeError, TypeError) as problem:
            raise SchemaError(
                f"{who}: column {name!r}: {text_of(problem)}; every column needs as many values as "
                "the others, of one type: whole numbers of 64 bits, floats, text that is UTF-8, …"
            ) from problem
    return columns


def _array(values: Any) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes):  # which Arrow takes for a list of letters
        raise TypeError(f"{shown(values, 60)} is one value")
    if isinstance(values, list | tuple):
        some = next((value for value in values if value is not None), None)
        if isinstance(some, list | tuple | Mapping | np.ma.MaskedArray):
            values = list(map(with_nulls, values))
    try:
        return pa.array(values)
    except OverflowError:
        return pa.array(values, pa.uint64())  # whole numbers from 2**63 on

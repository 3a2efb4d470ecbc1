"""Take rows from any library that offers them by Arrow's PyCapsule interface.

Polars and others keep text and bytes as views; they are plain text and bytes here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model.copies import copied_block, copied_table
from slackwater.runtime.model.schema import with_parts
from slackwater.runtime.shown import text_of

__all__ = ["ArrowArray", "ArrowStream", "arrow_table", "without_views"]


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


def arrow_table(data: Any) -> pa.Table:
    """Return copies of the rows of an object; a reader is read to its end.

    Raises:
        SchemaError: the object offers no rows, or rows that Arrow cannot take.
    """
    if isinstance(data, pa.Table):
        return copied_table(data)
    kind = type(data).__qualname__
    if not (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")):
        raise SchemaError(
            f"table: {kind} is not a table; pass {{column: values}}, an Arrow table, or a frame (a "
            "lazy one: .collect() it; a dataset of Ray: sw.ray_dataset(it))"
        )
    schema = getattr(data, "schema", None)  # of Polars, whose objects Arrow has as addresses
    types = schema.items() if isinstance(schema, Mapping) else ()
    objects = [name for name, of in types if str(of) == "Object"]
    if objects:
        raise SchemaError(
            f"table: column {objects[0]!r} has Python's objects, which do not travel; cast it, or "
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
            f"table: Arrow cannot take the rows of a {kind}: {text_of(problem)}; pass a frame with "
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

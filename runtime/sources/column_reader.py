"""Columns of a source out of its Arrow blocks, found once per schema.

A live source has blocks of a few rows, a thousand a second: to find five columns by name in each,
and to ask five types what they are, took as long as all else that is done to the block.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from slackwater.runtime.model import BoolArray, Columns
from slackwater.runtime.model.schema import (
    is_sound,
    is_time,
    number_dtype,
    read_type,
    refuse_unsound,
    storage_type,
)
from slackwater.runtime.sources.bad_times import refuse_bad_times
from slackwater.runtime.sources.columns import TIME_ROLES, read_columns, refuse_nulls

__all__ = ["ColumnReader"]


class ColumnReader:
    """Reads the columns of `schema`.

    Args:
        source: its name, for errors.
        schema: inside schema of the columns wanted.
        roles: {column on which order depends: its role}; they may have no nulls.
    """

    def __init__(self, source: str, schema: pa.Schema, roles: Mapping[str, str]) -> None:
        self._source, self._schema, self._roles = source, schema, dict(roles)
        self._known: pa.Schema | None = None  # that of the last block
        # (name, where it lies, whether Arrow keeps it, the type of its memory if it is a time).
        # None if some are not there.
        self._places: list[tuple[str, int, bool, pa.DataType | None]] | None = None

    def read(self, block: pa.RecordBatch, *, row: int) -> Columns:
        """Return the columns out of a block, as they are kept inside.

        Times may be beyond nanoseconds, if they are in a longer unit: `near_time_ns` refuses those.

        Args:
            block: rows as the reader gave them; may have more columns, in any order.
            row: how many rows of the input came before it, for errors.

        Raises:
            SchemaError: a column is missing, does not fit, or is null where it may not be.
        """
        columns = self._as_they_are(block)
        if columns is not None:
            return columns
        for name, role in self._roles.items():
            refuse_nulls(self._source, block, name, role=role, row=row)
            if role in TIME_ROLES:
                refuse_bad_times(self._source, block, name, role=role, row=row)
        return read_columns(self._source, block, self._schema, row=row)

    def usable(self, block: pa.RecordBatch, good: BoolArray, *, row: int) -> pa.RecordBatch:
        """Return some rows of a block, with the columns wanted; others may be damaged.

        Raises:
            SchemaError: text of one is.
        """
        block = block.select(
            [field.name for field in self._schema if field.name in block.schema.names]
        )
        who = f"source {self._source!r}, input rows {row} to {row + len(block) - 1}"
        for name, values in zip(block.schema.names, block.columns, strict=True):
            refuse_unsound(name, values, who=who)
        return block.filter(pa.array(good))

    def _as_they_are(self, block: pa.RecordBatch) -> Columns | None:
        """Return the columns; None if some have nulls, or other types inside."""
        schema = block.schema
        if self._known is None or not schema.equals(self._known):
            self._known, self._places = schema, self._places_in(schema)
        if self._places is None:
            return None
        columns: Columns = {}
        for name, place, is_arrow, time_as in self._places:
            values = block.column(place)
            if values.null_count:
                return None
            if is_arrow:
                if not is_sound(values):
                    return None
                columns[name] = values
                continue
            if time_as is not None:
                values = values.view(time_as)
            columns[name] = values.to_numpy(zero_copy_only=False)
        return columns

    def _places_in(
        self, schema: pa.Schema
    ) -> list[tuple[str, int, bool, pa.DataType | None]] | None:
        places = []
        for field in self._schema:
            place = schema.get_field_index(field.name)
            kind = read_type(field.type)
            if place < 0 or schema.field(place).type != kind:
                return None
            time_as = storage_type(kind) if is_time(kind) else None
            places.append((field.name, place, number_dtype(kind) is None, time_as))
        return places

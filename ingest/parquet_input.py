"""Read parquet files: types are in their footers, and differing types are widened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from slackwater.ingest.inputs import SAME_COLUMNS, FileInput, Good
from slackwater.ingest.record_walk import BadText
from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model.meeting_types import meeting_type
from slackwater.runtime.model.schema import travels

__all__ = ["ParquetInput"]


@dataclass(frozen=True, kw_only=True)
class ParquetInput(FileInput):
    """Parquet files. Memory: one row group, and one block."""

    kind = "parquet"
    suffixes = (".parquet",)
    untold = "write one with a schema"

    def _shown(self, path: str) -> pa.Schema:
        from pyarrow.parquet import read_schema  # noqa: PLC0415 (slow to import)

        return read_schema(path).remove_metadata()

    def _is_settled(self, whole: pa.Schema) -> bool:
        del whole
        return False  # any file may have a wider type

    def _merged(self, whole: pa.Schema, shown: pa.Schema, path: str) -> pa.Schema:
        given = {name for name, _ in self.types}
        self._check_names(path, shown, self._chosen(whole, path))
        fields = []
        for field in whole:
            at = shown.get_field_index(field.name)
            kind = field.type
            is_read = self.columns is None or field.name in self.columns
            if at >= 0 and is_read and field.name not in given:
                other = shown.field(at).type
                common = meeting_type(kind, other)
                if common is None:
                    raise SchemaError(
                        f"{self.kind} {path}: column {field.name!r} has type {other}, and {kind} "
                        f"in the first file; give one with types={{{field.name!r}: …}}; or "
                        f"{SAME_COLUMNS}"
                    )
                kind = common
            fields.append((field.name, kind))
        return pa.schema(fields)

    def _parts(self, path: str, schema: pa.Schema) -> Iterator[Good]:
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415

        with ParquetFile(path) as file:
            self._check_names(path, file.schema_arrow, schema)
            row = 0
            names = [f.name for f in schema if travels(f.type)] or schema.names
            for block in file.iter_batches(batch_size=self.batch_rows, columns=names):
                columns = [_cast(block, field, row=row) for field in schema]
                row += len(block)
                yield Good(pa.record_batch(columns, schema=schema))


def _cast(block: pa.RecordBatch, field: pa.Field, *, row: int) -> pa.Array:
    """Return a column of a block in the type of all files."""
    if not travels(field.type):  # no step reads it
        return pa.nulls(len(block), field.type)
    column = block.column(block.schema.get_field_index(field.name))
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise BadText(
            f"column {field.name!r} ({column.type}) does not fit {field.type} in rows {row} to "
            f"{row + len(block) - 1}: {problem}",
            line=None,
            way_out=f"say another type, types={{{field.name!r}: …}}, or correct those rows",
        ) from problem

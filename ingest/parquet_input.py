"""Read parquet files: types are in their footers, and differing types are widened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from slackwater.ingest.inputs import FileInput, Good, Mark
from slackwater.ingest.int96 import Block, blocks_of, cast_in_both, in_both, opened, whole_value
from slackwater.ingest.numerals import Misfit, cast_all
from slackwater.ingest.record_walk import BadText
from slackwater.runtime.model.exact_casts import cast_exactly
from slackwater.runtime.model.schema import travels
from slackwater.runtime.shown import shown, text_of

__all__ = ["ParquetInput"]


@dataclass(frozen=True, kw_only=True)
class ParquetInput(FileInput):
    """Parquet files. Memory: one row group, and one block."""

    kind = "parquet"
    suffixes = (".parquet",)
    untold = "write one with a schema"

    def _shown(self, path: str) -> pa.Schema:
        with opened(path) as file:
            return file.schema_arrow.remove_metadata()

    def groups_of(self, files: list[str]) -> list[list[int]]:  # noqa: D102 - see FileInput
        groups = []
        for number, path in enumerate(files):
            with self._naming(files, number), opened(path) as file:
                of_file = map(file.metadata.row_group, range(file.num_row_groups))
                groups.append([group.num_rows for group in of_file])
        return groups

    def _is_settled(self, whole: pa.Schema) -> bool:
        del whole
        return False  # any file may have a wider type

    def _merged(self, whole: pa.Schema, shown: pa.Schema, path: str) -> pa.Schema:
        wanted = [f for f in whole if self.columns is None or f.name in self.columns]
        self._check_names(path, shown, pa.schema(wanted))
        return self._united(whole, shown, path)

    def _parts(self, path: str, schema: pa.Schema, mark: Mark) -> Iterator[Good | Mark]:
        with opened(path) as file:
            shown = file.schema_arrow
            self._check_names(path, shown, schema)
            row = mark.numbers[0] if mark.numbers else 0
            names = [f.name for f in schema if travels(f.type) and f.name in shown.names]
            names = names or shown.names[:1]  # for the number of rows
            for block in blocks_of(file, path, names, self.batch_rows, first=row):
                columns = [_cast(block, field, row=row) for field in schema]
                yield Mark((row,))
                row += len(block.rows)
                yield Good(pa.record_batch(columns, schema=schema))


def _cast(block: Block, field: pa.Field, *, row: int) -> pa.Array:
    """Return a column of a block in the type of all files."""
    at = block.rows.schema.get_field_index(field.name)
    if at < 0 or not travels(field.type):  # the file lacks it, or no step reads it
        return pa.nulls(len(block.rows), field.type)
    column = block.rows.column(at)
    try:
        if field.name in block.in_ns:
            cast = cast_all(in_both(block, field.name), field.type, cast_in_both)
        else:
            cast = cast_all(column, field.type, cast_exactly)
    except pa.ArrowNotImplementedError as problem:
        cast = Misfit(0, f"is no {field.type}: {text_of(problem)}")
    if isinstance(cast, Misfit):
        value = shown(whole_value(block, field.name, cast.row))
        raise BadText(
            f"column {field.name!r} ({column.type}), row {row + cast.row} from 0: {value} "
            f"{cast.why}",
            line=None,
            way_out=f"say another type, types={{{field.name!r}: …}}, or correct the row",
        )
    return cast

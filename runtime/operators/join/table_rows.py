"""Table of a lookup: read whole, once, and kept in the step."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import SchemaError, TypeMismatch
from slackwater.runtime.expressions.result_types import type_read
from slackwater.runtime.model import Column
from slackwater.runtime.model.schema import column_from_arrow, inside_schema
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import shown
from slackwater.runtime.sources.frames import plain_table
from slackwater.runtime.sources.named_reader import called_by_name
from slackwater.runtime.sources.read_whole import read_whole
from slackwater.runtime.sources.spec import missing_methods

__all__ = ["TableRows", "table_rows"]

_OF_TABLES = ("items", "__arrow_c_stream__", "__arrow_c_array__")
"""Methods of tables and frames, of which one is enough."""


@dataclass(frozen=True)
class TableRows:
    """Rows of a table.

    Two are equal if their digests are: so a checkpoint says which rows a step had.

    Attributes:
        digest: digest of columns and rows.
        text: the table in a few words.
        schema: columns, as they are kept inside.
        rows: the rows, in one block.
    """

    digest: str
    text: str = field(compare=False)
    schema: pa.Schema = field(compare=False)
    rows: pa.RecordBatch = field(compare=False)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str, *, step: str) -> Column:
        """Return a column as it is kept inside.

        Raises:
            SchemaError: text that is not UTF-8.
        """
        kind = self.schema.field(name).type
        who = f"step {step!r}, its table"
        return column_from_arrow(name, self.rows.column(name), kind, who=who)


def table_rows(given: Any, *, step: str) -> TableRows:
    """Return the rows of a table, a frame, {column: values}, or an input.

    Args:
        given: table or input, as a user gave it.
        step: name of the step that looks up, for errors.

    Raises:
        TypeMismatch: the object is neither a table nor an input.
        SchemaError: columns of two names, or of a type that no step reads.
        IngestError: the input cannot be read.
    """
    kind = type(given)
    if any(hasattr(kind, name) for name in _OF_TABLES):
        table = plain_table(given, who=f"step {step!r}, its table")
        text = f"a table of {count_of(len(table), 'row')}"
    elif isinstance(given, type) or missing_methods(given):
        raise TypeMismatch(
            f"step {step!r}: {shown(given, 60)} is not a table; give {{column: values}}, a table "
            "of pyarrow, a frame of pandas, Polars or DuckDB (a lazy one: .collect() it), or an "
            "input such as sw.csv('zones.csv'); for a stream there are asof and join"
        )
    else:
        table = read_whole(given, who=step)
        text = str(called_by_name(step, given, "describe")).partition("\n")[0]
    return _rows_of(table, text, step=step)


def _rows_of(table: pa.Table, text: str, *, step: str) -> TableRows:
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise SchemaError(
                f"step {step!r}: the table has two columns {name!r}; rename one, or omit it"
            )
    for column in table.schema:
        type_read(column, step=step)
    # Taken, so that memory does not depend on how the rows came in blocks.
    table = table.replace_schema_metadata(None).combine_chunks().take(np.arange(len(table)))
    batches = table.combine_chunks().to_batches()
    rows = batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
    digest = hashlib.sha256(str(rows.schema).encode())
    digest.update(rows.serialize())
    return TableRows(digest.hexdigest(), text, inside_schema(table.schema), rows)

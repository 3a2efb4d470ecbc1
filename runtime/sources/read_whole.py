"""Reading an input to its end: a table for lookups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model import Int64Array
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import shown
from slackwater.runtime.sources.named_reader import called_by_name
from slackwater.runtime.sources.spec import (
    END_OF_INPUT,
    BadRows,
    Block,
    Input,
    place_of,
    traits_of,
)

__all__ = ["READ_NS", "UNTIL_NS", "doubled_key", "read_whole"]

READ_NS: Final = "reread_from_ns"
"""Column of a table that is read again: event time from which a row counts."""
UNTIL_NS: Final = "reread_until_ns"
"""Column of such a table: event time from which a row counts no longer."""


def read_whole(given: Input, *, who: str) -> pa.Table:
    """Return all rows of an input.

    Args:
        given: input with an end, such as files.
        who: name of the step or source that reads, for errors.

    Raises:
        SchemaError: it has nothing to read now, or rows that it cannot read.
        IngestError: it cannot be read.
    """
    schema = called_by_name(who, given, "schema")
    return pa.Table.from_batches(list(_blocks(given, who=who)), schema)


def doubled_key(
    rows: pa.Table | pa.RecordBatch,
    keys: Sequence[str],
    doubled: Int64Array,
    *,
    who: str,
    table: str,
) -> SchemaError:
    """Return the error of a table with several rows of one key.

    Args:
        rows: rows of the table.
        keys: names of the key columns.
        doubled: numbers of rows whose key an earlier row has, ascending.
        who: name of the step that looks up.
        table: words for the table.
    """
    first = rows.slice(int(doubled[0]), 1).select(list(keys)).to_pylist()[0]
    values = ", ".join(f"{key} = {shown(value)}" for key, value in first.items())
    return SchemaError(
        f"step {who!r}: {table} has {count_of(len(doubled), 'row')} with the key of an earlier "
        f"row, first {values}, in row {doubled[0]}, counted from 0; a lookup gives one row: drop "
        "the others, make a list of their values, or add a key column"
    )


def _blocks(given: Input, *, who: str) -> Iterator[pa.RecordBatch]:
    traits = traits_of(given)
    names = [""]
    if traits.has_partitions:
        names = [part.name for part in called_by_name(who, given, "partitions")]
    for name in names:
        reader = called_by_name(who, given, "open", *place_of(traits, name, None))
        try:
            while (polled := called_by_name(who, reader, "poll")) is not END_OF_INPUT:
                rows = polled.rows if isinstance(polled, Block) else polled
                if isinstance(rows, BadRows):
                    raise SchemaError(
                        f"step {who!r}: the table has records that cannot be read, first: "
                        f"{rows.rows.column('reason')[0].as_py()}; a table must be whole: mend "
                        "it, or read it with sw.table(…) of the rows that you want"
                    )
                if not isinstance(rows, pa.RecordBatch):
                    raise SchemaError(
                        f"step {who!r}: {shown(given, 60)} has no more rows now, and is not at "
                        "its end, and a table is read whole; make it a source, and write asof"
                    )
                yield rows
        finally:
            called_by_name(who, reader, "close")

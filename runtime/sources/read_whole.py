"""Reading an input to its end: a table for lookups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from slackwater.runtime.errors import SchemaError
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

__all__ = ["READ_NS", "UNTIL_NS", "read_whole"]

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

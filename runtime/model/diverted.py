"""Rows that a step could not use, and that leave by another stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import pyarrow as pa

from slackwater.runtime.model.batch import Column
from slackwater.runtime.model.schema import column_of_arrow

__all__ = [
    "DIVERTED_SCHEMA",
    "MOST_REPORTED",
    "DivertedRow",
    "OnBad",
    "columns_of_diverted",
]

DIVERTED_SCHEMA = pa.schema(
    {
        "step": pa.string(),
        "error": pa.string(),
        "row": pa.string(),
        "file": pa.string(),
        "line": pa.int64(),
    }
)
"""Columns of a stream of diverted rows."""


OnBad = Literal["error", "skip", "divert"]
"""Fate of rows that cannot be used."""
MOST_REPORTED = 10
"""Most rows that a report names of a stage."""
_SHOWN = 200
"""Most characters of a row in a report."""


class DivertedRow(NamedTuple):
    """Row that a step could not use.

    Attributes:
        error: the reason.
        row: a record as it came, or the row as JSON.
        file: file of the record; None if it is not known.
        line: line of the record, from 1; None if it is not known.
        event_time_ns: its own, or the newest of the rows before it in its stream; 0 if there is
            none. No cut of the rows into blocks and slices changes it.
    """

    error: str
    row: str
    file: str | None = None
    line: int | None = None
    event_time_ns: int = 0

    def __str__(self) -> str:
        place = "" if self.file is None else f"{self.file}: "
        place += "" if self.line is None else f"line {self.line}: "
        row = f": {self.row[:_SHOWN]}" if self.row else ""
        return f"{place}{self.error}{row}"


def columns_of_diverted(step: str, rows: Sequence[DivertedRow]) -> dict[str, Column]:
    """Return the columns of diverted rows, of DIVERTED_SCHEMA."""
    values = {
        "step": [step] * len(rows),
        "error": [row.error for row in rows],
        "row": [row.row for row in rows],
        "file": [row.file for row in rows],
        "line": [row.line for row in rows],
    }
    return {
        name: column_of_arrow(pa.array(values[name], DIVERTED_SCHEMA.field(name).type))
        for name in values
    }

"""Show rows of columns for errors: each value bounded, whatever its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from slackwater.runtime.shown import MOST_TEXT, in_words, shown

__all__ = ["batch_shown", "cell_shown", "row_shown"]


def batch_shown(rows: pa.RecordBatch, most_rows: int) -> str:
    """Return the first rows of a batch as text, as a list of Python's dicts."""
    names = [field.name for field in rows.schema]
    columns = dict(zip(names, rows.columns, strict=True))
    few = min(most_rows, rows.num_rows)
    return f"[{', '.join(row_shown(columns, place) for place in range(few))}]"


def row_shown(columns: Mapping[str, Any], place: int) -> str:
    """Return one row as text, as a dict; columns after `MOST_TEXT` characters are counted.

    Args:
        columns: {name: column}, of NumPy, Arrow or ours.
        place: place of the row, from 0.
    """
    cells: list[str] = []
    characters = 0
    for name, column in columns.items():
        if characters > MOST_TEXT:
            return f"{{{', '.join(cells)}, … and {len(columns) - len(cells):,} more}}"
        cells.append(f"{shown(name)}: {cell_shown(column, place)}")
        characters += len(cells[-1])
    return f"{{{', '.join(cells)}}}"


def cell_shown(column: Any, place: int) -> str:
    """Return one value of a column as text."""
    try:
        if isinstance(column, pa.Array | pa.ChunkedArray):
            return shown(column[place])
        return shown(column[place : place + 1].tolist()[0])
    except BaseException as worse:
        return f"a value that cannot be shown ({in_words(worse, 80)})"

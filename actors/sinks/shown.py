"""Show the first rows of a sink on the driver's terminal."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from slackwater.actors.sinks.csv_text import text_of
from slackwater.runtime.sinks.output import Sink
from slackwater.runtime.terminal_text import sanitized

__all__ = ["PrintSink"]

WIDEST = 40
"""Most characters of a value; the rest is cut."""


class PrintSink(Sink):
    """Shows the first rows, a line each, under the names of their columns.

    Args:
        name: name of the sink, which begins each line.
        schema: schema of the rows.
        limit: most rows that are shown; the others are counted.
        show: function that shows a line.
    """

    def __init__(
        self, name: str, schema: pa.Schema, *, limit: int, show: Callable[[str], None]
    ) -> None:
        self._name, self._limit, self._show_line = name, limit, show
        self._names = [sanitized(name, in_line=True) for name in schema.names]
        self._is_number = [
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
            for kind in schema.types
        ]
        self._widths: list[int] | None = None  # None if no row has come
        self._rows = 0
        self._is_over = False

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:
        """Show rows up to the limit, and count the others."""
        del first_ordinal
        shown = rows.slice(0, max(self._limit - self._rows, 0))
        self._rows += len(rows)
        if not len(shown):
            return
        columns = [_values(column) for column in shown.columns]
        if self._widths is None:  # those of the first batch: later lines stay under its names
            self._widths = [
                max(map(len, (name, *values)))
                for name, values in zip(self._names, columns, strict=True)
            ]
            self._show(self._names)
        for values in zip(*columns, strict=True):
            self._show(values)

    def close(self) -> None:
        """Say how many rows are not shown, the first time."""
        if self._is_over:
            return
        self._is_over = True
        more = self._rows - self._limit
        if more > 0:
            self._show_line(f"[{self._name}] … and {more:,} more")
        elif not self._rows:
            self._show_line(f"[{self._name}] no rows")

    def abort(self, error: str) -> None:
        """Say how many rows are not shown: they have left the flow, too."""
        del error
        self.close()

    def _show(self, values: tuple[str, ...] | list[str]) -> None:
        assert self._widths is not None, "the first rows set the widths"
        cells = zip(values, self._widths, self._is_number, strict=True)
        line = "  ".join(
            value.rjust(width) if is_number else value.ljust(width)
            for value, width, is_number in cells
        )
        self._show_line(f"[{self._name}] {line.rstrip()}")


def _values(column: pa.Array) -> list[str]:
    values = ("null" if value is None else value for value in text_of(column).to_pylist())
    return [_short(sanitized(value, in_line=True)) for value in values]


def _short(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"

"""Write rows as CSV text, column by column.

A value is in quotes if it has the separator, a quote or a line end, or if it would read as a null.
So an empty text is `""`, and a null is nothing.
"""

from __future__ import annotations

import base64
import re

import numpy as np
import pyarrow as pa

from slackwater.actors.sinks.file_settings import CsvFormat
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.exact_casts import cast_of_decimals
from slackwater.runtime.model.json_text import as_json, duration_text, infinite_values, plain
from slackwater.runtime.model.schema import is_binary, is_nested, is_text

__all__ = ["CsvText", "text_of"]

TEXT = pa.large_string()
"""Type of all text here: the lines of a batch may be more than 2 GiB."""
EMPTY, LINE_END, QUOTE = (pa.scalar(text, TEXT) for text in ("", "\n", '"'))
_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


class CsvText:
    """Rows as CSV, a line each.

    Args:
        schema: schema of the rows.
        form: separator, header and text of a null.
    """

    def __init__(self, schema: pa.Schema, form: CsvFormat) -> None:
        self._sep, self._nulls = form.sep, form.nulls
        self._sep_scalar = pa.scalar(form.sep, TEXT)
        nulls = re.escape(form.nulls)
        self._special = f'[{re.escape(form.sep)}"\r\n{_BOM}]|^({nulls})?$'
        # Readers omit an empty line, which would be a row of one null.
        self._null_text = form.nulls or ('""' if len(schema) == 1 else "")
        self.header = b""
        if form.header:
            names = pa.array(schema.names, TEXT)
            self.header = f"{form.sep.join(self._quoted(names).to_pylist())}\n".encode()

    def lines(self, rows: pa.RecordBatch) -> bytes:  # noqa: D102
        if not len(rows):
            return b""
        join = arrow_functions().binary_join_element_wise
        values = [self._values(column) for column in rows.columns]
        lines = join(join(*values, self._sep_scalar), EMPTY, LINE_END)
        _, ends, data = lines.buffers()
        first, last = np.frombuffer(ends, np.int64)[[lines.offset, lines.offset + len(lines)]]
        return memoryview(data)[first:last].tobytes()

    def lost_infinite(self, rows: pa.RecordBatch) -> int:  # noqa: D102
        return sum(infinite_values(column) for column in rows.columns if is_nested(column.type))

    def _values(self, column: pa.Array) -> pa.Array:
        text = text_of(column)
        if self._may_need_quotes(column.type):
            text = self._quoted(text)
        elif self._nulls:
            text = self._without_nulls(text)
        return text.fill_null(self._null_text) if text.null_count else text

    def _may_need_quotes(self, kind: pa.DataType) -> bool:
        is_free = is_text(kind) or is_nested(kind) or is_binary(kind)  # base64 may be empty
        return is_free or self._sep.isalnum() or self._sep in "+-.:=/"

    def _quoted(self, text: pa.Array) -> pa.Array:
        return _in_quotes(text, arrow_functions().match_substring_regex(text, self._special))

    def _without_nulls(self, text: pa.Array) -> pa.Array:
        """Return numbers with quotes around any that reads as a null."""
        return _in_quotes(text, arrow_functions().equal(text, pa.scalar(self._nulls, TEXT)))


def _in_quotes(text: pa.Array, needs: pa.Array) -> pa.Array:
    """Return texts, in quotes where a boolean says so."""
    of_arrow = arrow_functions()
    if not needs.true_count:
        return text
    doubled = of_arrow.replace_substring(text, '"', '""')
    quoted = of_arrow.binary_join_element_wise(QUOTE, doubled, QUOTE, EMPTY)
    return of_arrow.if_else(needs, quoted, text)


def text_of(column: pa.Array) -> pa.Array:
    """Return the values as text, without quotes."""
    kind = column.type
    if is_binary(kind):
        encoded = (value and base64.b64encode(value) for value in column.to_pylist())
        return pa.array(encoded, pa.large_binary()).cast(TEXT)
    if is_nested(kind):
        objects = (None if value is None else as_json(value) for value in plain(column).to_pylist())
        return pa.array(objects, TEXT)
    if pa.types.is_duration(kind):
        return duration_text(column)
    if pa.types.is_floating(kind):  # 1.0, so that a reader guesses a float
        return arrow_functions().replace_substring_regex(
            column.cast(TEXT), r"^(-?[0-9]+)$", r"\1.0"
        )
    return cast_of_decimals(plain(column), TEXT)

"""Rows as JSON lines."""

from __future__ import annotations

import pyarrow as pa

from slackwater.runtime.model.json_text import infinite_values, rows_as_json


class JsonText:
    """Rows as JSON objects, a line each; times are ISO 8601, NaN and ±inf null."""

    header = b""

    def lines(self, rows: pa.RecordBatch) -> bytes:  # noqa: D102
        return "".join(f"{row}\n" for row in rows_as_json(rows)).encode()

    def lost_infinite(self, rows: pa.RecordBatch) -> int:  # noqa: D102
        return sum(map(infinite_values, rows.columns))

"""Real files are read as they are, each whole, by the input of its ending."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from slackwater.runtime.errors import IngestError
from slackwater.runtime.sources.spec import EndOfInput
from tests.support.readers import next_rows

pytestmark = pytest.mark.data
SHARED = Path(__file__).parents[3] / "shared" / "data"
KINDS = {".parquet": sw.parquet, ".csv": sw.csv, ".json": sw.jsonl}
ARRAYS = ("risingwave-nexmark", "conformance")
"""Folders whose files are one JSON array, or are no rows; the page says so."""
NO_ROWS = ("beam", "duckdb")


def rows_of(path: Path) -> int:
    reader = KINDS[path.suffix](path).open()
    rows = 0
    while not isinstance(block := next_rows(reader), EndOfInput):
        rows += len(block)
    return rows


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not beside the project")
def test_each_file_is_read_whole_or_is_an_array_or_no_table() -> None:
    files = [path for path in sorted(SHARED.rglob("*")) if path.suffix in KINDS]
    assert len(files) > 40
    refused = {}
    for path in files:
        try:
            assert rows_of(path) > 0 or path.stat().st_size == 0
        except IngestError as problem:
            refused[path] = str(problem)
    for path, text in refused.items():
        assert path.parent.name in (*ARRAYS, *NO_ROWS), text
        if path.parent.name in ARRAYS:
            assert "one JSON array" in text

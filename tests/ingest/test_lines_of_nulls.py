"""Values that are not there: they travel; a time is refused by file, line and way out."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.ingest import records
from slackwater.runtime.errors import SchemaError, SettingError
from slackwater.runtime.sources.spec import Input


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut where a test can reach it."""
    monkeypatch.setattr(records, "PIECE_BYTES", 64)


def run(given: Input) -> pa.Table:
    flow = sw.Dataflow("f")
    rows = flow.source("s", given, event_time="t", time_unit="s")
    rows.select("t", "a").sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        return nodes.submit(flow).result("out")


@pytest.mark.parametrize("value", [7, 0.5, True, "2024-01-01T00:00:00"], ids=str)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_empty_value_is_a_null(tmp_path: Path, value: object, kind: str) -> None:
    full = [{"t": 1, "a": value}] * 30
    for name, rows in (("a-1", full), ("a-2", [*full, {"t": 1, "a": None}, *full])):
        if kind == "csv":
            lines = ["t,a", *(f"1,{'' if row['a'] is None else row['a']}" for row in rows)]
        else:
            lines = ["", *map(json.dumps, rows)]
        (tmp_path / f"{name}.{kind}").write_text("\n".join(lines) + "\n")
    read = {"csv": sw.csv, "jsonl": sw.jsonl}[kind]
    found = run(read(tmp_path / f"*.{kind}"))["a"]
    assert found.null_count == 1
    assert not found[60].is_valid
    assert len(found.unique()) == 2


def test_a_row_without_a_time_is_refused_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,a\n" + "1,1\n" * 30 + ",1\n")
    with pytest.raises(SchemaError, match=r"'t' is null.*on_bad='skip'.*a\.csv, line 32\)"):
        run(sw.csv(path))


def test_times_that_are_text_are_refused_with_the_type_to_say(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"t": "yesterday", "a": 1}\n')
    with pytest.raises(SchemaError, match=r"types={'t': 'timestamp\[ns, tz=UTC\]'}"):
        run(sw.jsonl(path))


def test_a_column_of_a_table_has_text_for_its_name() -> None:
    with pytest.raises(SchemaError, match="table: column name 7 is not text"):
        sw.table({7: [1]})  # type: ignore[dict-item]


def test_the_shortest_wait_is_no_longer_than_the_longest() -> None:
    with pytest.raises(SettingError, match=r"least=1.00 s must be at most timeout=500 ms"):
        sw.order.by_sequence(least="1s")

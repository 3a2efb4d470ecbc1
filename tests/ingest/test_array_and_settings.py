"""A JSON array is refused with the way out; a fingerprint has the settings of its input."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from slackwater.runtime.errors import IngestError, SettingError


@pytest.mark.parametrize("text", ['[{"a": 1},\n{"a": 2}]', '\n [\n{"a": 1}\n]\n'])
@pytest.mark.parametrize("on_bad", ["error", "skip"])
def test_a_json_array_is_refused_and_not_taken_for_lines(
    tmp_path: Path, text: str, on_bad: str
) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(IngestError, match=r"one JSON array.*jq -c '\.\[\]'"):
        sw.jsonl(tmp_path / "a.json", on_bad=on_bad).schema()


def test_a_fingerprint_differs_where_rows_would(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,x\n1,2\n")
    path = tmp_path / "a.csv"
    same = [sw.csv(path), sw.csv(path, batch_rows=7)]
    others = [
        sw.csv(path, sep=";"),
        sw.csv(path, nulls=("2",)),
        sw.csv(path, types={"x": "string"}),
        sw.csv(path, on_bad="skip"),
        sw.csv(path, columns=["x"]),
    ]
    prints = [one.fingerprint()[1] for one in [*same, *others]]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 1 + len(others)


@pytest.mark.parametrize("path", ["", " "])
def test_an_empty_path_is_refused_where_it_is_said(path: str) -> None:
    for read in (sw.csv, sw.jsonl, sw.parquet):
        with pytest.raises(IngestError, match=r"is empty, as of an unset variable"):
            read(path)
    with pytest.raises(SettingError, match=r"is empty, as of an unset variable"):
        sw.parquet_sink(path)


def test_a_list_of_paths_is_refused_with_what_to_write() -> None:
    with pytest.raises(SettingError, match=r"must be text or a path; .*a folder or a pattern"):
        sw.csv(["a.csv", "b.csv"])  # type: ignore[arg-type]

"""Who has the repository alone is told what real data is, and where it may lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from examples import real_data


def test_a_benchmark_without_its_data_says_where_to_put_it_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATA", str(tmp_path))
    assert main(["sltuner-warsaw", "--quick"]) == 1
    said = capsys.readouterr()
    assert said.err == (
        "sltuner-warsaw: left out: needs real data (see CONTRIBUTING, DATA=): "
        f"DATA={tmp_path} has no *.parquet files\n"
    )
    assert said.out == ""


def test_the_folder_named_comes_before_the_one_beside_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some.parquet").touch()
    monkeypatch.setenv("DATA", str(tmp_path))
    assert real_data.warsaw() == tmp_path
    monkeypatch.delenv("DATA")
    monkeypatch.setattr(real_data, "BESIDE", tmp_path / "nothing")
    with pytest.raises(real_data.NoRealData, match="there is none here"):
        real_data.warsaw()

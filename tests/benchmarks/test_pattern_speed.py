"""What is absent holds nothing, and the error says how to have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.flink import NoFlink
from benchmarks.frame import Claim, Options, Result, held
from benchmarks.patterns.on_flink import flink_cep


def test_a_claim_that_was_not_measured_does_not_hold() -> None:
    result = Result("nothing", ["what"], claims=[Claim("twice", None, ">=", 2.0)])

    (claim,) = result.to_json("pattern-speed", Options())["claims"]
    assert claim == {"name": "twice", "value": None, "target": ">= 2", "holds": False}
    assert "OPEN   twice: not measured" in result.text("pattern-speed", Options())
    assert held("it", [result], first_seed=1)[1] == "holds on 0 of 1: twice: not measured"


def test_without_flink_it_is_said_how_to_have_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLINK_PYTHON", str(tmp_path / "python"))

    with pytest.raises(NoFlink, match="make flink"), flink_cep():
        pass

"""What is measured beside ours answers the same question; what is absent holds nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.frame import Claim, Options, Result, held
from benchmarks.patterns.growth import STEPS, Growth, of_types
from benchmarks.patterns.naive import Naive
from benchmarks.patterns.on_flink import NoFlink, flink_cep
from benchmarks.patterns.timed import reads_of
from slackwater.runtime.operators import make_operator

FEW = of_types("few", 400, 4, seed=3)
NEXT = Growth("next", FEW.kinds, "next")


@pytest.mark.parametrize("length", [12, 60])
@pytest.mark.parametrize("growth", [FEW, NEXT], ids=lambda one: one.name)
def test_the_naive_matcher_finds_what_the_operator_finds(growth: Growth, length: int) -> None:
    naive = Naive(STEPS, length, growth.rule)
    plain = [
        list(run)
        for number, kind in enumerate(growth.kinds.tolist())
        for run in naive.take(number, kind)
    ]
    asked = growth.asked(length)
    operator = make_operator(asked.step())
    (read,) = reads_of(asked.rows)
    batch = operator.work(read, 0).rows
    texts = [] if batch is None else batch.columns["events"].tolist()

    ours = [[time_ns // 1_000 for _, time_ns in json.loads(text)] for text in texts]
    assert plain
    assert sorted(ours) == sorted(plain)


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

"""Subjects and stages: each stage is of one subject, and a step has all of its parts."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.model.subject import GATE, Subject
from slackwater.runtime.plan.parts import parts_named, parts_of
from slackwater.runtime.plan.plan import Stage, plan_stages

ROWS = pa.table({"ts": [1, 2], "key": [1, 1]})


def stages(replicas: int, *, close: Any = None) -> tuple[Stage, ...]:
    source = sw.table(ROWS)
    flow = sw.Dataflow("f")
    rows = flow.source("rows", source, event_time="ts")
    counts = rows.aggregate(
        by="key",
        window=sw.tumbling("1s"),
        n=sw.count(),
        name="counts",
        close=close,
        replicas=replicas,
    )
    counts.select("n", name="less").sink("out", sw.collect_sink())
    return plan_stages(flow.graph)


@pytest.mark.parametrize(
    ("replicas", "close", "parts"),
    [
        (1, None, ["counts"]),
        (3, None, [f"counts.{n}" for n in "123"]),
        (3, sw.closing.event_driven(), ["counts.gate", *[f"counts.{n}" for n in "123"]]),
    ],
)
def test_a_step_has_the_stages_of_all_its_parts(
    replicas: int, close: Any, parts: list[str]
) -> None:
    planned = stages(replicas, close=close)
    assert [stage.name for stage in parts_of(Subject("counts"), planned)] == parts
    assert parts_named("counts", planned) == parts_of(Subject("counts"), planned)


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_the_subject_of_a_stage_leads_back_to_that_stage_alone(replicas: int) -> None:
    planned = stages(replicas)
    assert len({stage.subject for stage in planned}) == len(planned)
    for stage in planned:
        of_step = parts_of(stage.subject.whole, planned)
        assert stage in of_step
        if len(of_step) > 1:
            assert parts_of(stage.subject, planned) == [stage]
        assert parts_named(stage.name, planned) == parts_of(stage.subject, planned)


def test_no_stage_is_of_a_part_that_the_step_lacks_or_of_an_unknown_step() -> None:
    planned = stages(2)
    assert parts_of(Subject("counts", 3), planned) == []
    assert parts_of(Subject("rows", GATE), planned) == []
    assert parts_of(Subject("less"), planned) == []  # it runs in the stages of `counts`
    assert parts_named("gone", planned) == []


def test_a_subject_includes_itself_and_a_step_its_parts() -> None:
    whole, gate, second = Subject("counts"), Subject("counts", GATE), Subject("counts", 2)
    assert whole.includes(whole)
    assert whole.includes(gate)
    assert whole.includes(second)
    assert second.includes(second)
    assert not second.includes(whole)
    assert not second.includes(gate)
    assert not whole.includes(Subject("counts.2"))  # another step


def test_a_subject_is_shown_by_its_stages_name_and_survives_pickling() -> None:
    own = [Subject("counts"), Subject("counts", GATE), Subject("counts", 2)]
    assert [f"{one}" for one in own] == ["counts", "counts.gate", "counts.2"]
    assert pickle.loads(pickle.dumps(own)) == own  # noqa: S301 (made here)

"""What a user writes to have replicas: checked at once, planned as a gate and its readers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import DuplicateName, FlowError, SettingError
from slackwater.runtime.model import READY_ONLY
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import KeyPart, plan_stages

ROWS = pa.table({"ts": [1, 2], "key": [1, 1], "v": [1.0, 2.0]})


def streams(**options: Any) -> tuple[sw.Dataflow, sw.Stream, sw.Stream]:
    flow = sw.Dataflow("f", **options)
    left, right = (flow.source(name, sw.table(ROWS), event_time="ts") for name in "ab")
    return flow, left, right


def joined(*, slack: str | None = None, **options: Any) -> sw.Dataflow:
    flow, left, right = streams(slack=slack)
    pairs = left.join(right, on="key", within="1s", name="pairs", **options)
    pairs.select("v").sink("out", sw.collect_sink())
    return flow


def test_one_replica_is_the_operator_behind_its_own_gate_as_ever() -> None:
    for replicas in (1, None):
        stages = plan_stages(joined(replicas=replicas).graph)
        assert [s.name for s in stages] == ["a", "b", "pairs", "out"]
        assert stages[-1].is_gated is (replicas == 1), "its rows are put into the order of keys"


def test_each_replica_has_a_gate_and_gets_the_rows_of_its_keys_from_all_feeders() -> None:
    stages = {s.name: s for s in plan_stages(joined(replicas=2).graph)}
    assert list(stages) == ["a", "b", "pairs.1", "pairs.2", "out"]
    for index in (0, 1):
        part = stages[f"pairs.{index + 1}"]
        assert (part.kind, part.rule, part.shares_gate) == ("join", READY_ONLY, False)
        assert [(c.source, c.owned) for c in part.inputs] == [
            ("a", KeyPart(("key",), index, (64, 64))),
            ("b", KeyPart(("key",), index, (64, 64))),
        ]
    assert all(c.shares_writers and not c.is_mixed for c in stages["out"].inputs)
    assert stages["out"].is_gated


def test_gates_of_replicas_have_the_slack_of_the_step() -> None:
    stages = {s.name: s for s in plan_stages(joined(replicas=2, slack="3s").graph)}
    assert list(stages) == ["a", "b", "pairs.1", "pairs.2", "out"]
    assert [stages[f"pairs.{n}"].rule.slack_ns for n in (1, 2)] == [3_000_000_000] * 2
    assert not stages["out"].is_gated, "by a slack results are early, in no order"


def test_replicas_are_stages_behind_a_gate_that_keeps_the_slack() -> None:
    stages = {s.name: s for s in plan_stages(joined(replicas=2, slack="3s", share="all").graph)}
    assert list(stages) == ["a", "b", "pairs.gate", "pairs.1", "pairs.2", "out"]
    gate, first = stages["pairs.gate"], stages["pairs.1"]
    assert (gate.kind, gate.rule.slack_ns, gate.replica) == ("gate", 3_000_000_000, None)
    assert (first.kind, first.rule) == ("join", READY_ONLY)
    assert [(c.port, c.schema.names) for c in first.inputs] == [(0, ["key", "v"]), (1, ["key"])]
    assert [step.name for step in first.chain] == ["select-1"]
    assert all(channel.is_mixed for channel in stages["out"].inputs)  # late results may come


def test_a_stage_knows_its_step_and_its_part_and_a_channel_its_replica() -> None:
    stages = {s.name: s for s in plan_stages(joined(replicas=2, share="all").graph)}
    assert [s.subject for s in stages.values()] == [
        Subject("a"),
        Subject("b"),
        Subject("pairs", "gate"),
        Subject("pairs", 1),
        Subject("pairs", 2),
        Subject("out"),
    ]
    dealt = [(c.target, c.replica, c.port) for c in stages["pairs.gate"].outputs]
    assert sorted(dealt) == [
        ("pairs.1", 0, 0),
        ("pairs.1", 0, 1),
        ("pairs.2", 1, 0),
        ("pairs.2", 1, 1),
    ]
    assert {c.replica for c in stages["out"].inputs} == {None}


def test_gate_and_replicas_have_slots_of_their_own_by_default() -> None:
    graph = joined(replicas=2, share="all").graph
    plan = place("f", plan_stages(graph), [f"node-{n}" for n in range(1, 6)])
    own = [plan.slots[name] for name in ("pairs.gate", "pairs.1", "pairs.2")]
    assert own == ["node-5", "node-4", "node-3"]
    assert plan.slots["a"] == "node-1"
    assert plan.slots["b"] == "node-2"


def test_the_name_of_the_step_places_all_its_parts_but_those_named_themselves() -> None:
    placement = {"pairs.2": "node-1", "pairs": "node-2"}
    slots = ["node-1", "node-2", "node-3"]
    graph = joined(replicas=2, share="all").graph
    plan = place("f", plan_stages(graph), slots, placement=placement)
    own = [plan.slots[name] for name in ("pairs.gate", "pairs.1", "pairs.2")]
    assert own == ["node-2", "node-2", "node-1"]


def test_explain_says_how_replicas_share() -> None:
    text = joined(replicas=2).explain()
    assert "replicas 2, each with a gate, to which the rows of its keys are sent" in text
    assert "order    event time, hash of the key, order within the key" in text
    assert "order    event time, hash of the key" in joined(replicas=1).explain()
    text = joined(replicas=2, slack="1s").explain()
    assert "replicas 2, each with a gate, to which the rows of its keys are sent" in text
    assert "order    as replicas' results come, since the gate releases by slack 1.00 s" in text
    text = joined(replicas=2, share="all").explain()
    assert "stores its share" in text
    assert "order    as replicas' results come, since share='all' divides the rows of a key" in text
    assert "replicas" not in joined().explain()
    assert "order    " not in joined().explain()


@pytest.mark.parametrize("replicas", [129, 10**30])
def test_more_replicas_than_groups_of_keys_are_refused(replicas: int) -> None:
    with pytest.raises(SettingError, match="must be 128 at most, since keys have 128 groups"):
        joined(replicas=replicas)


@pytest.mark.parametrize("replicas", [0, -1, 1.5, True, "2"])
def test_replicas_are_a_whole_number(replicas: Any) -> None:
    with pytest.raises(SettingError, match=r"replicas=.* must be a whole number"):
        joined(replicas=replicas)


def test_a_share_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingError, match="share='rows' must be 'keys' or 'all'"):
        joined(replicas=2, share="rows")


def test_a_window_is_shared_by_keys_only() -> None:
    _, left, _ = streams()
    share: Any = "all"
    with pytest.raises(FlowError, match="share='all' is not an aggregate"):
        left.aggregate(by="key", window=sw.tumbling("1s"), n=sw.count(), replicas=2, share=share)
    with pytest.raises(FlowError, match="it has none; give it a key"):
        left.aggregate(window=sw.tumbling("1s"), n=sw.count(), replicas=2)


def test_a_step_may_not_have_the_name_of_a_replica() -> None:
    flow, left, right = streams()
    pairs = left.join(right, on="key", within="1s", name="pairs", replicas=2)
    pairs.sink("pairs.2", sw.collect_sink())
    with pytest.raises(DuplicateName, match=r"'pairs\.2'"):
        plan_stages(flow.graph)

"""What events still take behind a stage that sheds: the worst path, and its growth."""

from __future__ import annotations

from dataclasses import replace

from slackwater.runtime.control import FlowGraph, RestBehind, Shed, StageNode
from slackwater.runtime.measure.samples import StageSample

MS = 1_000_000
GRAPH = FlowGraph(
    flow="f",
    stages=(
        StageNode(name="source", slot="a"),
        StageNode(name="found", slot="a", inputs=("source",), sheds=True),
        StageNode(name="quick", slot="b", inputs=("found",), is_sink=True),
        StageNode(name="slow", slot="b", inputs=("found",)),
        StageNode(name="out", slot="c", inputs=("slow",), is_sink=True),
    ),
)


def seen(**took_ms: int) -> dict[str, StageSample]:
    """Return samples by what rows took; `held_…` are those that still wait."""
    return {
        stage: StageSample(stage=stage, second=0, latency_ns=ms * MS)
        for stage, ms in took_ms.items()
    }


def test_the_rest_is_the_worst_path_behind_the_stage() -> None:
    rest = RestBehind(GRAPH)
    assert rest.begin() == []
    samples = seen(source=900, found=700, quick=250, slow=200, out=100)
    assert rest.decide(0, samples) == [Shed("found", 300 * MS)]


def test_what_travels_and_what_is_held_count() -> None:
    samples = {
        "slow": StageSample(stage="slow", second=0, latency_ns=5 * MS, comm_ns=20 * MS),
        "out": StageSample(stage="out", second=0, latency_ns=5 * MS, held_ns=400 * MS),
    }
    assert RestBehind(GRAPH).decide(0, samples) == [Shed("found", 425 * MS)]


def test_growth_is_taken_to_go_on_and_decline_is_not() -> None:
    rest = RestBehind(GRAPH)
    told = [
        rest.decide(number, seen(slow=ms))[0].rest_ns // MS
        for number, ms in enumerate((100, 100, 300, 200, 0))
    ]
    assert told == [100, 100, 500, 200, 0]


def test_waits_for_the_slot_of_the_stage_that_sheds_count_once() -> None:
    stages = [
        StageNode(name="found", slot="a", sheds=True),
        StageNode(name="out", slot="a", inputs=("found",), is_sink=True),
    ]
    waited = StageSample(
        stage="out", second=0, latency_ns=900 * MS, held_ns=950 * MS, busy_ns=6 * MS, slices=3
    )
    for slot, rest_ms in (("a", 2), ("b", 950)):
        graph = FlowGraph(flow="f", stages=(stages[0], replace(stages[1], slot=slot)))
        assert RestBehind(graph).decide(0, {"out": waited}) == [Shed("found", rest_ms * MS)]


def test_a_sink_in_the_slot_of_another_replica_waits_for_work_that_is_shed() -> None:
    stages = (
        StageNode(name="found.1", slot="a", sheds=True),
        StageNode(name="found.2", slot="b", sheds=True),
        StageNode(name="out", slot="a", inputs=("found.1", "found.2"), is_sink=True),
    )
    waited = StageSample(stage="out", second=0, latency_ns=900 * MS, busy_ns=6 * MS, slices=3)
    told = RestBehind(FlowGraph(flow="f", stages=stages)).decide(0, {"out": waited})
    assert told == [Shed("found.1", 2 * MS), Shed("found.2", 2 * MS)]


def test_a_flow_that_sheds_nothing_has_nobody_to_tell() -> None:
    stages = tuple(one for one in GRAPH.stages if not one.sheds)
    assert FlowGraph(flow="f", stages=stages).shedding == ()
    assert GRAPH.shedding == ("found",)

"""What events still take behind a stage that sheds: the worst path, and its growth."""

from __future__ import annotations

from slackwater.runtime.control.commands import Shed
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.control.rest import RestDownstream
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.whole_steps import by_step
from slackwater.runtime.model.subject import Subject
from tests.support.graphs import node

MS = 1_000_000
GRAPH = FlowGraph(
    flow="f",
    steps=(
        node("source", "a"),
        node("found", "a", inputs=("source",), sheds=True),
        node("quick", "b", inputs=("found",), is_sink=True),
        node("slow", "b", inputs=("found",)),
        node("out", "c", inputs=("slow",), is_sink=True),
    ),
)


def seen(**took_ms: int) -> dict[Subject, StageSample]:
    """Return samples by what rows took; `held_…` are those that still wait."""
    return {
        step: StageSample(subject=step, second=0, latency_ns=ms * MS)
        for step, ms in ((Subject(name), ms) for name, ms in took_ms.items())
    }


def test_the_rest_is_the_worst_path_behind_the_step() -> None:
    rest = RestDownstream(GRAPH)
    assert rest.begin() == []
    samples = seen(source=900, found=700, quick=250, slow=200, out=100)
    assert rest.decide(0, samples) == [Shed(Subject("found"), 300 * MS)]


def test_what_travels_and_what_is_held_count() -> None:
    samples = [
        StageSample(subject=Subject("slow"), second=0, latency_ns=5 * MS, comm_ns=20 * MS),
        StageSample(subject=Subject("out"), second=0, latency_ns=5 * MS, held_ns=400 * MS),
    ]
    assert RestDownstream(GRAPH).decide(0, by_step(samples)) == [Shed(Subject("found"), 425 * MS)]


def test_growth_is_taken_to_go_on_and_decline_is_not() -> None:
    rest = RestDownstream(GRAPH)
    told = [
        rest.decide(number, seen(slow=ms))[0].rest_ns // MS
        for number, ms in enumerate((100, 100, 300, 200, 0))
    ]
    assert told == [100, 100, 500, 200, 0]


def test_waits_for_the_slot_of_the_step_that_sheds_count_once() -> None:
    waited = StageSample(
        subject=Subject("out"),
        second=0,
        latency_ns=900 * MS,
        held_ns=950 * MS,
        busy_ns=6 * MS,
        slices=3,
    )
    for slot, rest_ms in (("a", 2), ("b", 950)):
        found = node("found", "a", sheds=True)
        out = node("out", slot, inputs=("found",), is_sink=True)
        graph = FlowGraph(flow="f", steps=(found, out))
        told = RestDownstream(graph).decide(0, by_step([waited]))
        assert told == [Shed(Subject("found"), rest_ms * MS)]


def test_a_sink_in_the_slot_of_another_replica_waits_for_work_that_is_shed() -> None:
    steps = (
        node("found", "c", "a", "b", sheds=True),
        node("out", "a", inputs=("found",), is_sink=True),
    )
    waited = StageSample(
        subject=Subject("out"), second=0, latency_ns=900 * MS, busy_ns=6 * MS, slices=3
    )
    told = RestDownstream(FlowGraph(flow="f", steps=steps)).decide(0, by_step([waited]))
    assert told == [Shed(Subject("found"), 2 * MS)]


def test_a_flow_that_sheds_nothing_has_nobody_to_tell() -> None:
    steps = tuple(one for one in GRAPH.steps if not one.sheds)
    assert FlowGraph(flow="f", steps=steps).shedding == ()
    assert GRAPH.shedding == (Subject("found"),)

"""Samples of whole steps: one for each step, with the path's latency unchanged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Tried
from slackwater.runtime.measure.whole_steps import by_step, history_by_step
from slackwater.runtime.model import ReleaseRule
from slackwater.runtime.model.subject import GATE, Subject
from slackwater.runtime.tune import Paths, measured_ns

JOIN, OUT = Subject("join"), Subject("out")
ROWS = st.integers(0, 1_000)
NS = st.integers(0, 10**10)


def part(number: int, **counts: int) -> StageSample:
    return StageSample(subject=Subject("join", number), second=3, **counts)  # type: ignore[arg-type]


def gate(**counts: int) -> StageSample:
    return StageSample(
        subject=Subject("join", GATE),
        second=3,
        rule=ReleaseRule.slack(7),
        readers=2,
        tried=(Tried("quick", 4, 2),),
        **counts,  # type: ignore[arg-type]
    )


def test_a_step_that_is_one_stage_keeps_its_sample_itself() -> None:
    own = StageSample(subject=JOIN, second=3, rows=5)
    assert by_step([own])[JOIN] is own
    assert history_by_step([own])[0] is own


def test_a_step_waits_in_its_gate_and_then_for_its_slowest_replica() -> None:
    parts = [
        part(
            1, latency_ns=20, comm_ns=1, rows=40, held=2, held_ns=5, busy_ns=8, handed=9, slices=2
        ),
        gate(latency_ns=400, comm_ns=30, rows=100, slack_ready=6, late=2, held=50, held_ns=300),
        part(
            2, latency_ns=30, comm_ns=9, rows=60, held=1, held_ns=900, busy_ns=7, handed=3, slices=1
        ),
    ]
    whole = by_step(parts)[JOIN]
    assert (whole.subject, whole.latency_ns, whole.comm_ns) == (JOIN, 400 + 39, 30)
    assert (whole.rows, whole.slack_ready, whole.late, whole.readers) == (100, 6, 2, 2)
    assert (whole.held, whole.held_ns) == (53, 900)
    assert (whole.busy_ns, whole.handed, whole.slices) == (15, 12, 3)
    assert (whole.rule, whole.tried) == (ReleaseRule.slack(7), (Tried("quick", 4, 2),))


def test_without_its_gate_a_step_is_not_there_and_without_a_replica_it_is() -> None:
    out = StageSample(subject=OUT, second=3)
    assert by_step([part(1, latency_ns=9, readers=0), out]) == {OUT: out}
    assert by_step([gate(latency_ns=5), part(2, latency_ns=9)])[JOIN].latency_ns == 14


def test_of_replicas_with_gates_the_slowest_has_the_latency_and_counts_are_summed() -> None:
    slow = part(1, latency_ns=9, rows=3, frontier_ns=7, held=1, late=2)
    fast = part(2, latency_ns=4, rows=5, frontier_ns=5, held=2)
    whole = by_step([slow, fast])[JOIN]
    assert (whole.latency_ns, whole.rows, whole.held, whole.late) == (9, 8, 3, 2)
    assert whole.frontier_ns == 5


def test_a_history_has_one_sample_for_each_step_and_second() -> None:
    seconds = [
        StageSample(subject=subject, second=second, latency_ns=second)
        for second in (0, 1, 0, 1)  # of two jobs
        for subject in (Subject("join", GATE), Subject("join", 1), Subject("join", 2), OUT)
    ]
    whole = history_by_step(seconds)
    assert [(one.subject, one.second, one.latency_ns) for one in whole] == [
        (JOIN, 0, 0), (OUT, 0, 0), (JOIN, 1, 2), (OUT, 1, 1),
        (JOIN, 0, 0), (OUT, 0, 0), (JOIN, 1, 2), (OUT, 1, 1),
    ]  # fmt: skip


@given(st.lists(st.tuples(NS, NS), min_size=1, max_size=4), NS, NS, st.tuples(NS, NS))
def test_the_worst_path_over_steps_is_that_over_stages(
    replicas: list[tuple[int, int]], wait_ns: int, comm_ns: int, out: tuple[int, int]
) -> None:
    last = StageSample(subject=OUT, second=3, latency_ns=out[0], comm_ns=out[1])
    parts = [part(n, latency_ns=took, comm_ns=way) for n, (took, way) in enumerate(replicas, 1)]
    sampled = [gate(latency_ns=wait_ns, comm_ns=comm_ns), *parts, last]
    first, others = sampled[0].subject, tuple(one.subject for one in parts)
    stages = Paths({first: (), **dict.fromkeys(others, (first,)), OUT: others}, (first,))
    steps = Paths({JOIN: (), OUT: (JOIN,)}, (JOIN,))
    by_stage = {one.subject: one for one in sampled}
    assert steps.latency_ns(measured_ns(by_step(sampled))) == stages.latency_ns(
        measured_ns(by_stage)
    )

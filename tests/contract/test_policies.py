"""What every policy must do: travel, draw alike, survive what is missing, set what may be set."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.sltuner.rival_policies import RIVALS
from slackwater.runtime.config import Tuning
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.model import NS_PER_SECOND, START_NS
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.tune import Paths, SlackPolicy, make_policy

POLICIES = [
    "sltuner",
    "even split",
    *RIVALS,
    "last second, by the clock",
    "trend-following",
    "steady trend",
    "decaying maximum",
    "slowly decaying maximum",
    "largest delay",
    "aimd",
    "fixed wait",
    "ready-only",
    "calibration",
    "500ms",
]


def plan() -> Plan:
    rows = sw.table(pa.table({"ts": [1], "key": [1]}))
    flow = sw.Dataflow("two", deadline="6s")
    left, right = (flow.source(name, rows, event_time="ts") for name in ("left", "right"))
    counts = left.merge(right, name="both").aggregate(
        by="key", window=sw.tumbling("1s"), n=sw.count(), name="counts"
    )
    counts.sink("out", sw.collect_sink())
    return place(flow.name, plan_stages(flow.graph), ["a"], deadline_ns=flow.deadline_ns)


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest) -> SlackPolicy:
    own = RIVALS.get(request.param, request.param)
    made = make_policy(FlowGraph.of(plan()), Tuning(policy=own))
    assert made is not None
    return made


def series() -> list[tuple[int, dict[Subject, StageSample]]]:
    """Return seconds with steps and seconds missing, silent ones, and ones at the very start."""
    steps = list(Paths.of(FlowGraph.of(plan())).inputs)
    found = []
    for second in (0, 1, 2, 5, 6, 30, 31, 400):
        there = steps[second % 3 :] if second != 6 else []
        found.append(
            (
                second,
                {
                    step: StageSample(
                        subject=step,
                        second=second,
                        rows=second % 4,
                        latency_ns=(second * 7 % 11) * NS_PER_SECOND,
                        slack_ready=second % 5,
                        newest_ns=START_NS if second == 0 else second * NS_PER_SECOND,
                        frontier_ns=START_NS if second == 0 else second * NS_PER_SECOND // 2,
                    )
                    for step in there
                },
            )
        )
    return found


def played(policy: SlackPolicy) -> list[object]:
    return [list(policy.begin()), *(list(policy.decide(*one)) for one in series())]


def test_it_sets_only_tuned_gates_and_only_what_a_gate_takes(policy: SlackPolicy) -> None:
    tuned = Paths.of(FlowGraph.of(plan())).tuned
    gate = SlackGate([Writer(0, 0)], keeps_waits=True)
    settings = [*policy.begin()]
    for one in series():
        settings += policy.decide(*one)
    assert settings
    for setting in settings:
        assert setting.subject in tuned
        assert setting.by
        gate.set_rule(setting.rule)


def test_it_travels_and_goes_on_where_it_was(policy: SlackPolicy) -> None:
    policy.begin()
    for one in series()[:4]:
        policy.decide(*one)
    copy = pickle.loads(pickle.dumps(policy))  # noqa: S301 - our own
    for one in series()[4:]:
        assert list(copy.decide(*one)) == list(policy.decide(*one))
    assert copy.name == policy.name


def test_it_decides_alike_every_time(policy: SlackPolicy) -> None:
    copy = pickle.loads(pickle.dumps(policy))  # noqa: S301 - our own
    assert played(policy) == played(copy)


def test_it_survives_a_second_in_which_nobody_reported(policy: SlackPolicy) -> None:
    for second in range(3):
        policy.decide(second, {})

"""From `deadline=` to a policy: which gates are tuned, which names there are, what is said."""

from __future__ import annotations

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.config import Tuning
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import NS_PER_SECOND, READY_ONLY, ReleaseRule
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.tune import SetRelease, make_policy

ROWS = pa.table({"ts": pa.array([1], pa.int64()), "key": pa.array([1], pa.int64())})


def flow_of(
    *,
    slack: str | None = None,
    deadline: str | None = None,
    own: dict[str, str | None] | None = None,
) -> sw.Dataflow:
    """Return two gates in a row; `own`: {gate: its own slack}."""
    flow = sw.Dataflow("two", slack=slack, deadline=deadline)
    sources = [flow.source(name, sw.table(ROWS), event_time="ts") for name in ("a", "b", "c")]
    settings = {name: {"slack": value} for name, value in (own or {}).items()}
    both = sources[0].merge(sources[1], name="both", **settings.get("both", {}))
    all_ = both.merge(sources[2], name="all", **settings.get("all", {}))
    all_.sink("out", sw.collect_sink())
    return flow


def planned(flow: sw.Dataflow) -> Plan:
    return place(flow.name, plan_stages(flow.graph), ["a"], deadline_ns=flow.deadline_ns)


def tuned(flow: sw.Dataflow) -> dict[str, int | str | None]:
    """Return {gate: its slack, or 'tuned'}."""
    stages = planned(flow).stages
    return {s.name: "tuned" if s.is_tuned else s.rule.slack_ns for s in stages if s.kind == "merge"}


@pytest.mark.parametrize(
    ("flow", "gates"),
    [
        (flow_of(), {"both": None, "all": None}),
        (flow_of(deadline="6s"), {"both": "tuned", "all": "tuned"}),
        (flow_of(deadline="6s", own={"both": "500ms"}), {"both": 500_000_000, "all": "tuned"}),
        (flow_of(deadline="6s", own={"all": None}), {"both": "tuned", "all": None}),
        (flow_of(slack="2s", deadline="6s"), {"both": 2 * 10**9, "all": 2 * 10**9}),
        (flow_of(slack="2s"), {"both": 2 * 10**9, "all": 2 * 10**9}),
    ],
)
def test_a_gate_is_tuned_that_has_no_slack_in_a_flow_with_a_deadline(
    flow: sw.Dataflow, gates: dict[str, int | str | None]
) -> None:
    assert tuned(flow) == gates


def test_a_tuned_gate_starts_ready_only() -> None:
    assert {s.rule for s in planned(flow_of(deadline="6s")).stages} == {READY_ONLY}


def test_a_plan_knows_its_deadline() -> None:
    assert planned(flow_of(deadline="6s")).deadline_ns == 6 * NS_PER_SECOND
    assert planned(flow_of()).deadline_ns is None


def test_explain_says_what_sets_each_slack() -> None:
    text = flow_of(deadline="6s", own={"both": "500ms"}).explain()
    assert "slack by the deadline, deadline 6.00 s" in text.splitlines()[0]
    assert "gate     slack 500 ms" in text
    assert "gate     slack by the deadline" in text
    assert "-2" not in text
    plain = flow_of().explain()
    assert "ready-only" in plain.splitlines()[0]
    assert "no deadline" in plain.splitlines()[0]


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        ("even split", "even split"),
        ("trend-following", "trend-following"),
        ("steady trend", "steady trend"),
        ("decaying maximum", "decaying maximum"),
        ("slowly decaying maximum", "slowly decaying maximum"),
        ("largest delay", "largest delay"),
        ("aimd", "aimd"),
        ("ready-only", "ready-only"),
        ("calibration", "calibration"),
        ("500ms", "static 500 ms"),
        ("0s", "on arrival"),
    ],
)
def test_a_policy_is_made_by_its_name(policy: str, name: str) -> None:
    made = make_policy(FlowGraph.of(planned(flow_of(deadline="6s"))), Tuning(policy=policy))
    assert made is not None
    assert made.name == name
    assert {one.subject.name for one in made.begin()} == {"both", "all"}


def test_a_slack_as_policy_is_set_on_every_tuned_gate() -> None:
    flow = flow_of(deadline="6s", own={"all": "1s"})
    made = make_policy(FlowGraph.of(planned(flow)), Tuning(policy="500ms"))
    assert made is not None
    assert made.begin() == [
        SetRelease(Subject("both"), ReleaseRule.slack(500_000_000), by=made.name)
    ]


@pytest.mark.parametrize(
    "flow", [flow_of(), flow_of(slack="1s", deadline="6s"), flow_of(slack="1s")]
)
def test_without_a_gate_to_tune_there_is_no_policy(flow: sw.Dataflow) -> None:
    assert make_policy(FlowGraph.of(planned(flow)), Tuning()) is None


@pytest.mark.parametrize("policy", ["sltuner2", "", "-5s", "soon"])
def test_a_policy_that_there_is_not_is_refused_with_those_that_there_are(policy: str) -> None:
    with pytest.raises(SettingError, match=r"'even split'.*'500ms'"):
        make_policy(FlowGraph.of(planned(flow_of(deadline="6s"))), Tuning(policy=policy))


@pytest.mark.parametrize(
    "settings",
    [
        {"probability": 0.4},
        {"probability": 1.0},
        {"probability": float("nan")},
        {"alpha": 0.0},
        {"alpha": 1.0},
        {"window_s": 59},
        {"retrain_s": 0},
        {"predictor": "oracle"},
        {"policy": None},
        {"probability": "0.9"},
        {"alpha": None},
        {"window_s": 900.5},
        {"history": 5},
        {"seed": True},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        Tuning(**settings)  # type: ignore[arg-type]

"""A prediction held against the run that it is of, and flows that are not let in."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.report.picture import draw_latency
from slackwater.report.render import report_text
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.foresight.chosen.admission import RunningFlow, broken_by
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.predicted.predicting import predict
from slackwater.runtime.foresight.shared_cores import SharedCores
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.simulate import CostModel
from tests.foresight.predicted.test_prediction import FLOW
from tests.support.known_work import MS, bursts, counts_of, sampled, times
from tests.support.typed import said

S = 1_000_000_000


def run_of(table: pa.Table, *, dearer: float) -> tuple[FlowSample, JobReport]:
    """Run bursts whose rows cost so many times what was sampled."""
    row_ns = int(0.7 * 60e9 / len(table))
    flow, sample = sampled(row_ns, table)
    cost = CostModel(per_slice_ns=0, per_row_ns=0, stages={"gate": round(row_ns * dearer)})
    rates = {"numbers": counts_of(table)}
    return sample, sw.Simulation(1, cost=cost).submit(flow, rates=rates, sample=sample).wait()


@pytest.mark.parametrize("seed", [1])
def test_what_was_predicted_stands_beside_what_was_measured(seed: int) -> None:
    table = bursts(seed)
    _, report = run_of(table, dearer=1.0)
    made = report.prediction
    assert made is not None
    missing = len(table) - sum(one.events for one in made.spans)
    assert 0 <= missing < 40, "of the last second, which was not over"
    assert made.measured_worst_ns == report.sinks[0].latency.max_ns
    behind = [one for one in made.spans if (one.measured_ns or 0) > 2 * S]
    assert behind, "bursts leave a backlog"
    for one in behind:
        assert one.planned_ns == pytest.approx(one.measured_ns, abs=1 * S)  # in w of the estimate
        assert one.estimated_ns == pytest.approx(one.measured_ns, abs=1 * S)
    assert made.shifts == []
    assert made.errors == 0


@pytest.mark.parametrize("seed", range(2))
def test_rows_that_cost_more_than_was_sampled_are_found_and_the_estimate_follows(
    seed: int,
) -> None:
    table = bursts(seed)
    sample, report = run_of(table, dearer=1.6)
    made = report.prediction
    assert made is not None
    (shift,) = made.shifts
    assert (shift.of, shift.what) == ("gate", "cost")
    (known_s,) = [one.cost_s[0] for one in sample.graph.operators if one.name == "gate"]
    assert shift.was == pytest.approx(known_s, rel=0.01)
    assert shift.now == pytest.approx(1.6 * known_s, rel=0.01)
    assert any("gate: a row costs" in note and "plan it again" in note for note in report.notes)
    measured_ns = made.measured_worst_ns or 0
    assert made.worst_ns < 0.8 * measured_ns  # what was predicted no longer holds
    assert made.estimated_worst_ns == pytest.approx(measured_ns, rel=0.06)


def test_a_source_that_sends_more_than_was_given_is_found() -> None:
    flow, sample = sampled(3 * MS, times(3_500, every_ns=4 * MS))
    cost = CostModel(per_slice_ns=0, per_row_ns=0, stages={"gate": 3 * MS})
    report = sw.Simulation(1, cost=cost).submit(flow, rates=100, sample=sample).wait()
    assert report.prediction is not None
    (shift,) = report.prediction.shifts
    assert (shift.of, shift.what) == ("numbers", "rate")
    assert shift.was == pytest.approx(100)
    assert shift.now == pytest.approx(250)


def test_without_rates_nothing_is_predicted_and_a_report_says_nothing_of_it() -> None:
    flow, _ = sampled(MS, times(100))
    report = sw.Simulation(1).submit(flow).wait()
    assert report.prediction is None
    assert "Predicted" not in report_text(report)
    assert "no rates are known" in sw.Simulation(1).explain(flow)


def test_the_report_keeps_it_and_draws_it(tmp_path: Path) -> None:
    _, report = run_of(bursts(3, until_s=10), dearer=1.0)
    again = JobReport.from_json(json.loads(json.dumps(report.to_json())))
    assert again.prediction == report.prediction
    text = report_text(report)
    assert "Predicted beside measured (worst: " in text
    assert "from what" in text
    draw_latency(report, tmp_path / "latency.png")
    assert (tmp_path / "latency.png").stat().st_size > 10_000


def test_a_flow_that_would_break_its_deadline_is_refused_or_warned_of() -> None:
    flow, sample = sampled(10 * MS, times(2_000))
    place = sw.Simulation(nodes=2)
    with pytest.raises(FlowError, match=r"'works' is refused: its backlog grows for ever: node-2"):
        place.submit(flow, rates=200, sample=sample, admission="reject")
    for admission in ("warn", None):
        plan = place.plan(flow, rates=200, sample=sample, admission=admission)
        assert plan.verdict.refusal is None
        assert any("its backlog grows for ever" in note for note in plan.verdict.notes)
    slow = {"numbers": [20.0 if p < 100 else 1.0 for p in range(600)]}  # 200/s for 10 s
    refused = place.plan(flow, rates=slow, sample=sample, admission="reject").verdict.refusal
    assert refused is not None
    assert "its deadline of 5.00 s would not be kept" in refused
    assert "admission='warn'" in refused
    fine = place.plan(flow, rates=50, sample=sample, admission="reject")
    assert fine.verdict.refusal is None
    assert fine.verdict.notes == ()


def test_admission_needs_rates_and_one_of_two_words() -> None:
    flow, _ = sampled(MS, times(100))
    with pytest.raises(SettingError, match="no rates are given: add rates="):
        sw.Simulation(1).submit(flow, admission="reject")
    with pytest.raises(SettingError, match="admission='no' must be 'reject'"):
        sw.Simulation(1).submit(flow, rates=5, admission="no")  # type: ignore[arg-type]


def test_a_machine_of_fewer_cores_than_slots_is_the_bottleneck_of_what_runs_there_together() -> (
    None
):
    """Two flows of 0.6 of a core each, on one core: each alone is fine, both are not."""
    flow, sample = sampled(6 * MS, times(2_000))
    plan = sw.Simulation(nodes=3).plan(flow, placement={"*": "node-1"})
    slots = frozenset({"node-1", "node-2", "node-3"})

    def on(cores: float, *, taken: float, others: int) -> object:
        machine = SharedCores(
            name="this machine", cores=cores, slots=slots, taken=taken, others=others
        )
        return predict(plan, sample, 100, machines=[machine])

    running = RunningFlow(name="flow 'first'", cores=0.6, slots=1, worst_s=0.1, deadline_s=2.0)
    alone = on(1, taken=0.0, others=0)
    assert alone.machines == ()  # type: ignore[attr-defined]
    assert broken_by(alone, [running]) == []  # type: ignore[arg-type]
    both = on(1, taken=0.6, others=1)
    assert both.estimate.is_unbounded  # type: ignore[attr-defined]
    assert both.estimate.bottleneck.name == "this machine"  # type: ignore[attr-defined]
    (told,) = broken_by(both, [running])  # type: ignore[arg-type]
    assert told == "flow 'first' (deadline 2.00 s) then has a backlog that grows for ever"
    roomy = on(2, taken=0.6, others=1)
    assert broken_by(roomy, [running]) == []  # type: ignore[arg-type]


def test_the_command_line_explains_runs_and_refuses_by_a_rate(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW, encoding="utf-8")
    target = str(tmp_path / "flow.py")

    text = said("explain", target, "--rate", "1000", "--nodes", "2")
    assert "bottleneck  node-" in text
    assert "relief      " in text
    assert "--nodes goes with --rate" in said("explain", target, "--nodes", "2", code=2)
    out = ("--out", str(tmp_path / "out"))
    run = ("run", target, "--simulate", *out)
    assert "Predicted beside measured" in said(*run, "--rate", "1000", "--admission", "reject")
    refused = said(*run, "--rate", "900_000_000", "--admission", "reject", code=1)
    assert "flow 'typed' is refused: its backlog grows for ever" in refused
    assert "no rates are given" in said(*run, "--admission", "warn", code=1)

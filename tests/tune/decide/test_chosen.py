from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.tune.decide.tuner import SAFE_RULE
from tests.support.flows import late_pair, ticking


@pytest.mark.parametrize(
    ("deadline", "tuning", "claim"),
    [
        (None, sw.Tuning(), "flow 'late' has no deadline, and tuning= says how one is kept"),
        ("1s", {"policy": "aimd"}, "tuning={'policy': 'aimd'} is a dict; write tuning=sw.Tuning("),
        ("1s", sw.Tuning(policy="sltuna"), "policy='sltuna' is none of 'sltuner'"),
        ("1s", sw.Tuning(policy="-1s"), "policy='-1s' is none of"),
    ],
)
def test_a_wrong_tuning_is_refused_at_submit(deadline: Any, tuning: Any, claim: str) -> None:
    with sw.Simulation(1) as nodes, pytest.raises(SettingError) as caught:
        nodes.submit(late_pair("late", seconds=1, deadline=deadline), tuning=tuning)
    assert claim in str(caught.value)


def test_a_deadline_without_a_gate_to_tune_is_said_and_nothing_is_tuned() -> None:
    with sw.Simulation(1) as nodes:
        report = nodes.submit(late_pair("late", seconds=1, deadline="1s", slack="2s")).wait()
        flow, numbers = ticking("no gate", seconds=0.1)
        flow.deadline_ns = 10**9
        numbers.sink("out", sw.collect_sink())
        bare = nodes.submit(flow).wait()
    assert report.tuning is None
    assert "the deadline of 1.00 s sets nothing" in report.notes[-1]
    assert "each has a slack of its own" in report.notes[-1]
    assert "(it has none)" in bare.notes[-1]


def test_without_a_deadline_report_and_explain_say_so_where_a_gate_waits() -> None:
    waits, holds_nothing = late_pair("late", seconds=1), late_pair("late", seconds=1, slack="0s")
    with sw.Simulation(1) as nodes:
        notes = [nodes.submit(flow).wait().notes[-1] for flow in (waits, holds_nothing)]
    assert ["no deadline: gates release only what is ready" in note for note in notes] == [
        True,
        False,
    ]
    assert "no deadline: gates release only what is ready" in waits.explain()
    assert "no deadline" not in holds_nothing.explain()


def test_the_simulator_reports_how_a_deadline_was_kept() -> None:
    with sw.Simulation(3, seed=1) as nodes:
        flow = late_pair("late", seconds=6, deadline="1s")
        report = nodes.submit(flow, tuning=sw.Tuning(policy="500ms")).wait()
        again = nodes.submit(flow, tuning=sw.Tuning(policy="500ms")).wait()
    tuning = report.tuning
    assert tuning is not None
    assert report.to_json() == again.to_json()
    assert sw.JobReport.from_json(report.to_json()).to_json() == report.to_json()
    (gate,) = tuning.gates
    stage = next(one for one in report.stages if one.name == "gate")
    assert (gate.rule.slack_ns, gate.by) == (500_000_000, "static 500 ms")
    assert (gate.slack_ready, gate.late) == (stage.unready, stage.late)
    assert gate.slack_ready > 0 < gate.late
    assert 0 < stage.late_ready <= stage.late + stage.late_dropped
    spans = tuning.series.spans
    assert tuning.seconds == len(spans) >= 6
    assert sum(span.gates["gate"].slack_ready for span in spans) == gate.slack_ready
    assert max(span.latency_ns for span in spans[:6]) < 600_000_000


def test_the_safe_rule_keeps_the_deadline_from_the_first_second_on() -> None:
    with sw.Simulation(3, seed=1) as nodes:
        report = nodes.submit(late_pair("late", seconds=20, deadline="700ms")).wait()
    tuning = report.tuning
    assert tuning is not None
    assert tuning.status["seconds"] == {SAFE_RULE: tuning.seconds}
    assert tuning.gates[0].slack_ready > 0, "else nothing was late, and the test is none"
    assert tuning.over == 0


def test_a_simulated_job_begins_with_the_history_of_those_before(tmp_path: Path) -> None:
    def run(policy: str, seconds: float, folder: str = "kept") -> TuningReport:
        flow = late_pair("late", seconds=seconds, deadline="700ms")
        tuning = sw.Tuning(policy=policy, predictor="linear", history=tmp_path / folder)
        limits = sw.Limits(source_gap_ns=100_000_000)
        with sw.Simulation(3, seed=1) as nodes:
            report = nodes.submit(flow, tuning=tuning, limits=limits).wait()
        assert report.tuning is not None
        return report.tuning

    assert run("calibration", 25).status["history"] == "0 samples of 0 earlier jobs"
    (file,) = (tmp_path / "kept").rglob("*.jsonl")
    (file.parent / "0.jsonl").write_text("rubbish")
    tuned = run("sltuner", 8)
    assert tuned.status["history"].endswith("of 1 earlier jobs, 1 file could not be read")
    assert tuned.status["fits"] == 1, "it has a model before the first fit of a run without"
    assert "model" in tuned.status["records"], "which runs along from the first second on"
    assert tuned.status["seconds"] == {SAFE_RULE: tuned.seconds}, "and has not yet won"
    (tmp_path / "file").write_text("")
    assert run("500ms", 1, "file").status["history"].startswith("not kept: ")

"""A deadline on Ray: slacks are set while the job runs, whatever becomes of who sets them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import slackwater as sw
from actors import tuner_care
from runtime.errors import SettingError
from runtime.measure import StageReport, TuningReport
from tests.support.flows import late_pair
from tests.support.tuners import SLACK_NS, DifficultTuner
from tests.support.waiting import until

pytestmark = pytest.mark.ray

LIMIT_S = 60.0
GONE_S = 10.0
SECONDS = 5.1  # then the one behind has caught up, and the last rows are no exception
ROWS = 2 * 255
MS = 10**6


def tuners() -> list[int]:
    """The processes of tuners below this one."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "ray::Tuner" in " ".join(process.cmdline()):
                found.append(process.pid)
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.fixture(autouse=True)
def no_tuner_is_left() -> Iterator[None]:
    yield
    until(lambda: not tuners(), within_s=GONE_S, what="the tuner's process to end")


def tuning_of(job: sw.Job) -> TuningReport:
    tuning = job.report().tuning
    assert tuning is not None
    return tuning


def gate_of(report: sw.JobReport) -> StageReport:
    return next(stage for stage in report.stages if stage.name == "gate")


def check_tuned(report: sw.JobReport) -> TuningReport:
    """Every row is there, some in another order, and the report says so consistently."""
    assert report.state == "done"
    assert report.ledger.is_balanced
    assert report.ledger.out == ROWS
    tuning = report.tuning
    assert tuning is not None
    (gate,) = tuning.gates
    stage = gate_of(report)
    assert (gate.slack_ready, gate.late) == (stage.slack_ready, stage.late)
    assert gate.slack_ready > 0 < gate.late
    assert (tuning.errors, tuning.last_error) == (0, None)
    assert tuning.seconds == len(tuning.series.spans)
    return tuning


def test_a_slack_is_set_keeps_the_deadline_and_is_reported(cluster: sw.Cluster) -> None:
    flow = late_pair("late", seconds=SECONDS, deadline="1s")
    job = cluster.submit(flow, tuning=sw.Tuning(policy="500ms"))
    seen = []
    report = job.wait(timeout=LIMIT_S, on_report=lambda one: seen.append(one.tuning))
    tuning = check_tuned(report)
    assert (tuning.policy, tuning.restarts) == ("static 500 ms", 0)
    assert tuning.gates[0].slack_ns == 500 * MS
    assert tuning.seconds >= 5
    assert tuning.over <= 1
    assert any(one is not None and 0 < one.seconds < 5 for one in seen)
    spans = tuning.series.spans
    assert [span.gates["gate"].slack_ns for span in spans[1:]] == [500 * MS] * (len(spans) - 1)
    late = [span for span in spans if span.gates["gate"].slack_ready]
    assert late
    assert all(span.gates["gate"].latency_ns > 400 * MS for span in late)
    assert job.result("out").num_rows == ROWS


def test_a_tuner_that_is_killed_is_replaced_and_the_slacks_stay(cluster: sw.Cluster) -> None:
    flow = late_pair("late", seconds=SECONDS, deadline="1s")
    job = cluster.submit(flow, tuning=sw.Tuning(policy="500ms"))
    until(lambda: tuning_of(job).seconds >= 2, within_s=LIMIT_S, what="two seconds")
    (pid,) = tuners()
    os.kill(pid, signal.SIGKILL)
    until(lambda: tuning_of(job).restarts, within_s=GONE_S, what="another tuner")
    report = job.wait(timeout=LIMIT_S)
    tuning = check_tuned(report)
    assert tuning.restarts == 1
    assert tuning.gates[0].slack_ns == 500 * MS
    assert any("the tuner died once and was started again" in note for note in report.notes)
    spans = tuning.series.spans
    assert {span.gates["gate"].slack_ns for span in spans[1:]} == {500 * MS}
    assert [span.second for span in spans][:2] == [0, 1]
    assert spans[-1].second >= 4
    assert len(spans) >= spans[-1].second  # one second may have died with it


def test_a_tuner_that_hangs_is_replaced_and_the_slacks_stay(
    cluster: sw.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = late_pair("late", seconds=SECONDS, deadline="1s")
    job = cluster.submit(flow, tuning=sw.Tuning(policy="500ms"))
    until(lambda: tuning_of(job).seconds >= 2, within_s=LIMIT_S, what="two seconds")
    (pid,) = tuners()
    os.kill(pid, signal.SIGSTOP)
    with monkeypatch.context() as soon:
        soon.setattr(tuner_care, "SILENT_S", 1.0)
        until(lambda: tuning_of(job).restarts, within_s=GONE_S, what="another tuner")
    report = job.wait(timeout=LIMIT_S)
    tuning = check_tuned(report)
    assert (tuning.restarts, tuning.gates[0].slack_ns) == (1, 500 * MS)
    assert {span.gates["gate"].slack_ns for span in tuning.series.spans[1:]} == {500 * MS}


def test_a_policy_that_is_slow_and_raises_holds_nobody_up_and_the_slacks_stay(
    cluster: sw.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuner_care, "Tuner", DifficultTuner)
    job = cluster.submit(late_pair("late", seconds=SECONDS, deadline="1s"))
    report = job.wait(timeout=LIMIT_S)
    assert report.state == "done"
    assert report.ledger.is_balanced
    assert report.elapsed_s < SECONDS + 2
    tuning = report.tuning
    assert tuning is not None
    assert (tuning.policy, tuning.restarts, tuning.errors) == ("difficult", 0, 2)
    assert tuning.gates[0].slack_ns == SLACK_NS
    assert (tuning.last_error or "").startswith("SettingError: stage 'gate': slack_ns=-7 must be")
    assert any("went wrong 2 times, and the slacks stayed" in note for note in report.notes)
    assert tuning.seconds == len(tuning.series.spans) >= 5  # none was missed meanwhile
    slacks = [span.gates["gate"].slack_ns for span in tuning.series.spans]
    assert set(slacks[1:]) == {SLACK_NS}


def test_a_detached_job_keeps_a_deadline_in_the_care_of_its_coordinator(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    flow = late_pair("late apart", seconds=SECONDS, deadline="1s")
    job = cluster.submit(flow, detach=True, tuning=sw.Tuning(history=str(tmp_path)))
    until(lambda: tuning_of(job).gates[0].by, within_s=LIMIT_S, what="a slack")
    running = cluster.job("late apart").report()
    assert running.tuning is not None
    slack_ns = running.tuning.gates[0].slack_ns
    assert slack_ns is not None
    assert 0 <= slack_ns <= 1_000 * MS
    report = job.wait(timeout=LIMIT_S)
    tuning = check_tuned(report)
    assert tuning.seconds >= 5
    assert tuning.status["history"] == "0 samples of 0 earlier jobs"
    (kept,) = tmp_path.glob("late_apart-*/*")
    assert len(kept.read_text().splitlines()) >= 4 * tuning.seconds
    assert {part.who for part in job.logs()} == {*job.workers(), "coordinator", "tuner"}
    assert job.result("out").num_rows == ROWS
    assert job.report().to_json() == report.to_json()


def test_a_job_that_is_stopped_takes_its_tuner_with_it(cluster: sw.Cluster) -> None:
    job = cluster.submit(late_pair("stopped", seconds=300, deadline="1s"))
    until(lambda: tuning_of(job).gates[0].by, within_s=LIMIT_S, what="a slack")
    assert len(tuners()) == 1
    job.stop()
    until(lambda: not tuners(), within_s=GONE_S, what="the tuner's process to end")
    assert job.report().state == "stopped"
    assert tuning_of(job).gates[0].by


def test_a_wrong_tuning_is_refused_before_any_actor_is_started(cluster: sw.Cluster) -> None:
    flow = late_pair("late", seconds=1, deadline="1s")
    for wrong in (sw.Tuning(policy="slack"), {"policy": "tcp"}):
        with pytest.raises(SettingError, match=r"flow .late.|policy=.slack."):
            cluster.submit(flow, tuning=wrong)  # type: ignore[arg-type]
    assert tuners() == []

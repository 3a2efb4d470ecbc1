"""A deadline on Ray: slacks are set while the job runs, whatever becomes of who sets them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from itertools import dropwhile
from pathlib import Path

import numpy as np
import pytest

import slackwater as sw
from slackwater.actors.tuning.sample_history import SampleHistory
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Tried
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune.decide.model_rule import FIRST_FIT_S
from slackwater.runtime.tune.decide.tuner import MODEL, SAFE_RULE
from tests.support.flows import late_pair
from tests.support.gates import course
from tests.support.processes import below, command_lines
from tests.support.tuners import SLACK_NS, OwnPolicy
from tests.support.waiting import until

pytestmark = pytest.mark.ray

LIMIT_S = 60.0
GONE_S = 10.0
MS = 10**6
ON_TWO = {"*": "node-1", "gate": "node-2"}
"""For all that is no matter of three hosts: a slot costs more than a second to start."""


def tuners() -> list[int]:
    """The processes of tuners below this one."""
    lines = command_lines(below())
    return [process.pid for process, line in lines.items() if "ray::Tuner" in line]


@pytest.fixture(autouse=True)
def no_tuner_is_left() -> Iterator[None]:
    """Before each test, those of other files' jobs have ended; after it, its own has."""
    until(lambda: not tuners(), within_s=GONE_S, what="the tuners of other tests to end")
    yield
    until(lambda: not tuners(), within_s=GONE_S, what="the tuner's process to end")


def tuning_of(job: sw.Job) -> TuningReport:
    tuning = job.report().tuning
    assert tuning is not None
    return tuning


def slacks_once_set(tuning: TuningReport) -> list[int | None]:
    """The slack at the end of each second, from the first on in which the tuner had set one.

    Which second that is, nobody promises: a busy machine takes seconds to start a process.
    """
    slacks = [span.gates["gate"].slack_ns for span in tuning.series.spans]
    return list(dropwhile(lambda slack_ns: slack_ns is None, slacks))


def has_seen_enough(tuning: TuningReport) -> bool:
    """Some seconds of a slack that does something: rows did not wait, and rows came too late."""
    (gate,) = tuning.gates
    return len(slacks_once_set(tuning)) >= 4 and gate.slack_ready > 0 < gate.late


def end(job: sw.Job, over: Path) -> sw.JobReport:
    """Let a job end that has seen enough."""
    until(lambda: has_seen_enough(tuning_of(job)), within_s=LIMIT_S, what="rows of both kinds")
    over.touch()
    return job.wait(timeout=LIMIT_S)


def gate_of(report: sw.JobReport) -> StageReport:
    return next(stage for stage in report.stages if stage.name == "gate")


def check_tuned(report: sw.JobReport) -> TuningReport:
    """Every row is there, some in another order, and the report says so consistently."""
    assert report.state == "done"
    assert report.ledger.is_balanced
    assert report.ledger.out == report.ledger.entered
    tuning = report.tuning
    assert tuning is not None
    (gate,) = tuning.gates
    stage = gate_of(report)
    assert (gate.slack_ready, gate.late) == (stage.unready, stage.late)
    assert gate.slack_ready > 0 < gate.late
    assert (tuning.errors, tuning.last_error) == (0, None)
    assert tuning.seconds == len(tuning.series.spans)
    return tuning


def check_rows(job: sw.Job) -> None:
    """Both sources counted from 0 to where they ended, and nothing is missing or there twice."""
    times = np.bincount(job.result("out")["n"].to_numpy())
    ended = int(np.count_nonzero(times == 2))
    assert ended > 0
    assert times.tolist() == [2] * ended + [1] * (len(times) - ended)


def test_a_slack_is_set_keeps_the_deadline_and_is_reported(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    over = tmp_path / "over"
    # Rows that waited for the one behind would be over from the fourth second on; of those that
    # wait for half a second, a busy machine may delay some by two more.
    flow = late_pair("late", lag_ms=6_000, over=over, deadline="3s")
    job = cluster.submit(flow, tuning=sw.Tuning(policy="500ms"))

    def look(
        report: sw.JobReport,
    ) -> None:  # it is told while the job runs, or there is no end
        if report.tuning is not None and has_seen_enough(report.tuning):
            over.touch()

    tuning = check_tuned(job.wait(timeout=LIMIT_S, on_report=look))
    check_rows(job)
    assert (tuning.policy, tuning.restarts) == ("static 500 ms", 0)
    assert tuning.gates[0].rule.slack_ns == 500 * MS
    slacks = slacks_once_set(tuning)
    assert slacks == [500 * MS] * len(slacks)
    spans = tuning.series.spans
    assert sum(span.over for span in spans[-len(slacks) :]) <= 1  # of rows that waited before it
    late = [span for span in spans if span.gates["gate"].slack_ready]
    assert late
    assert all(span.gates["gate"].latency_ns > 400 * MS for span in late)


def test_at_half_a_second_slots_are_asked_and_the_deadline_is_judged_twice_as_often(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    over = tmp_path / "over"
    flow = late_pair("late", lag_ms=6_000, over=over, deadline="3s")
    job = cluster.submit(flow, placement=ON_TWO, tuning=sw.Tuning(policy="500ms", interval="500ms"))
    tuning = check_tuned(end(job, over))
    check_rows(job)
    assert tuning.interval_ns == 500 * MS
    spans = tuning.series.spans
    assert tuning.seconds > job.report().elapsed_s, "more than one a second"
    assert [one.second for one in spans] == sorted({one.second for one in spans})


def test_a_tuner_that_is_killed_is_replaced_and_the_slacks_stay(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    flow = late_pair("late", over=tmp_path / "over", deadline="1s")
    job = cluster.submit(flow, placement=ON_TWO, tuning=sw.Tuning(policy="500ms"))
    (pid,) = until(tuners, within_s=LIMIT_S, what="a tuner")
    until(lambda: slacks_once_set(tuning_of(job)), within_s=LIMIT_S, what="a slack")
    until(lambda: tuning_of(job).seconds >= 2, within_s=LIMIT_S, what="two seconds")
    os.kill(pid, signal.SIGKILL)
    until(lambda: tuning_of(job).restarts, within_s=GONE_S, what="another tuner")
    known = tuning_of(job).seconds
    until(lambda: tuning_of(job).seconds > known, within_s=LIMIT_S, what="it to tell of a second")
    report = end(job, tmp_path / "over")
    tuning = check_tuned(report)
    assert tuning.restarts == 1
    assert tuning.gates[0].rule.slack_ns == 500 * MS
    assert any("the tuner died once and was started again" in note for note in report.notes)
    assert set(slacks_once_set(tuning)) == {500 * MS}
    spans = tuning.series.spans
    assert [span.second for span in spans][:2] == [0, 1]
    assert len(spans) >= spans[-1].second  # one second may have died with it


def test_a_detached_job_keeps_a_deadline_in_the_care_of_its_coordinator(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    flow = late_pair("late apart", over=tmp_path / "over", deadline="1s")
    job = cluster.submit(
        flow, detach=True, placement=ON_TWO, tuning=sw.Tuning(history=str(tmp_path))
    )
    until(lambda: tuning_of(job).gates[0].by, within_s=LIMIT_S, what="a slack")
    running = cluster.job("late apart").report()
    assert running.tuning is not None
    gate = running.tuning.gates[0]
    assert (gate.by, gate.rule.slack_ns) == (SAFE_RULE, None), (
        "no slack before a model has earned it"
    )
    assert gate.rule.hold_ns is not None
    assert 0 <= gate.rule.hold_ns <= 1_000 * MS
    report = end(job, tmp_path / "over")
    tuning = check_tuned(report)
    assert tuning.status["history"] == "0 samples of 0 earlier jobs"
    (kept,) = tmp_path.glob("late_apart-*/*")
    # Four stages; the last second of the report may be one that not all of them got to the end of.
    assert len(kept.read_text().splitlines()) > 4 * (tuning.seconds - 1)
    assert {part.who for part in job.logs()} == {*job.workers(), "coordinator", "tuner"}
    check_rows(job)
    assert job.report().to_json() == report.to_json()
    made = cluster.predict(flow, history=tmp_path)
    assert made.rates == pytest.approx({"fast": 50, "slow": 50}, rel=0.5)
    assert made.gates is not None, "it is known how far the slow one was behind"
    assert made.plan.flow == "late apart"


def test_a_policy_of_the_users_travels_and_what_no_slot_can_do_is_its_mistake(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    flow = late_pair("late own", over=tmp_path / "over", deadline="1s")
    job = cluster.submit(flow, detach=True, placement=ON_TWO, tuning=sw.Tuning(policy=OwnPolicy()))
    until(lambda: tuning_of(job).errors, within_s=LIMIT_S, what="a slot to refuse")
    report = end(job, tmp_path / "over")
    tuning = report.tuning
    assert tuning is not None
    assert (tuning.policy, tuning.errors) == ("OwnPolicy", 1)
    assert "stage 'gate' cannot move to slot 'node-9'" in (tuning.last_error or "")
    assert (tuning.gates[0].rule.slack_ns, tuning.gates[0].by) == (SLACK_NS, "OwnPolicy")
    assert list(tuning.warnings) == ["gate: buses are late"]
    assert any("warns of gate: buses are late" in note for note in report.notes)
    job.stop()  # nobody fetches its rows, so its coordinator would wait for that


def known_to_gain(seconds: int) -> list[StageSample]:
    """Samples of an earlier job of `late_pair` in which the models lost half of the rows."""
    names = {"join": "gate", "buses": "slow", "loops": "fast", "out": "out"}
    tried = Tried(SAFE_RULE, 20, 900 * MS), Tried(MODEL, 10, 900 * MS)
    return [
        replace(one, subject=Subject(names[one.stage]), tried=tried if one.stage == "join" else ())
        for samples in course(seconds, seed=5)
        for one in samples.values()
    ]


def test_gaussian_processes_rule_on_ray_from_the_start_if_their_record_says_so(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    flow = late_pair("late", over=tmp_path / "over", deadline="1s")
    history = tmp_path / "history"
    graph = FlowGraph.of(cluster.plan(flow, placement=ON_TWO))
    problem = SampleHistory(history, graph, most=10_000).save(known_to_gain(60), job="0")
    assert problem is None
    job = cluster.submit(flow, placement=ON_TWO, tuning=sw.Tuning(history=str(history)))
    until(lambda: tuning_of(job).gates[0].by == MODEL, within_s=LIMIT_S, what="the models to rule")
    tuning = check_tuned(end(job, tmp_path / "over"))
    check_rows(job)
    assert tuning.status["seconds"][MODEL] > 0
    assert tuning.status["failures"] == {}


@pytest.mark.hosts  # for its 40 s, which `make test` has not
def test_past_its_first_half_minute_on_ray_the_gaussian_processes_run_along(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    job = cluster.submit(late_pair("late", over=tmp_path / "over", deadline="1s"))

    def has_fitted() -> bool:
        status = tuning_of(job).status
        return bool(status.get("fits")) and MODEL in status["records"]

    until(has_fitted, within_s=2 * LIMIT_S, what="models that run along")
    tuning = check_tuned(end(job, tmp_path / "over"))
    check_rows(job)
    assert tuning.status["failures"] == {}
    assert tuning.seconds > FIRST_FIT_S


def test_a_job_that_is_stopped_takes_its_tuner_with_it(cluster: sw.Cluster) -> None:
    job = cluster.submit(late_pair("stopped", deadline="1s"), placement=ON_TWO)
    until(lambda: tuning_of(job).gates[0].by, within_s=LIMIT_S, what="a slack")
    assert len(tuners()) == 1
    job.stop()
    assert tuners() == []
    assert job.report().state == "stopped"
    assert tuning_of(job).gates[0].by


def test_a_wrong_tuning_is_refused_before_any_actor_is_started(cluster: sw.Cluster) -> None:
    flow = late_pair("late", seconds=1, deadline="1s")
    for wrong in (sw.Tuning(policy="slack"), {"policy": "aimd"}):
        with pytest.raises(SettingError, match=r"flow .late.|policy=.slack."):
            cluster.submit(flow, tuning=wrong)  # type: ignore[arg-type]
    assert tuners() == []

"""A tuner among actors that answer as slots do: nothing is lost, doubled or out of order."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import psutil
import pytest
import ray

import slackwater as sw
from slackwater.actors.kernel.process_identity import ProcessIdentity, start_of
from slackwater.actors.nodes.time_limits import within
from slackwater.actors.slot.slot_samples import SlotSamples
from slackwater.actors.tuning import process as tuner_process
from slackwater.actors.tuning import supervisor as tuner_care
from slackwater.actors.tuning import tuner as tuner_module
from slackwater.actors.tuning.supervisor import BackOff, TunerSupervisor
from slackwater.actors.tuning.tuner import Tuner, TunerState
from slackwater.runtime.measure.deadline import deadline_notes
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.plan import Plan
from tests.support.flows import late_pair
from tests.support.processes import below, command_lines
from tests.support.tuners import StuckTuner
from tests.support.waiting import until

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]

SECONDS = 4
SOON_S = 30.0
MS = 10**6


class PlayedSlot:
    """Has samples to give, once, and keeps what it is told."""

    def __init__(self, samples: list[StageSample]) -> None:
        self._samples = samples
        self._told: list[tuple[Any, ...]] = []

    def call(self, method: str, *args: Any) -> Any:
        if method == "apply":
            self._told.append(args)
            return None
        given, self._samples = self._samples, []
        return SlotSamples(given, NS_PER_SECOND)

    def told(self) -> list[tuple[Any, ...]]:
        return self._told


@pytest.fixture(autouse=True)
def nobody_is_hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is not what these tests are about."""
    monkeypatch.setattr(tuner_module, "ANSWER_S", SOON_S)
    monkeypatch.setattr(tuner_care, "FINISH_S", SOON_S)


@pytest.fixture(scope="module")
def plan() -> Plan:
    with sw.Simulation(1) as nodes:
        return nodes.plan(late_pair("late", seconds=1, deadline="1s"))


def slots_of(plan: Plan) -> dict[str, Any]:
    (slot,) = plan.slot_names
    samples = [
        StageSample(subject=stage.subject, second=second)
        for second in range(SECONDS)
        for stage in plan.stages
    ]
    slots = {slot: ray.remote(PlayedSlot).options(num_cpus=0).remote(samples)}
    assert told(slots) == []  # it is up
    return slots


def told(slots: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    (slot,) = slots.values()
    found: list[tuple[Any, ...]] = ray.get(slot.told.remote(), timeout=SOON_S)
    return found


def report_of(care: TunerSupervisor) -> TuningReport:
    report = care.report()
    assert report is not None
    return report


class LastWords(Tuner):
    """Answers once, and dies when it is asked again."""

    def state(self, known: int, *, is_last: bool = False) -> TunerState:
        if self._has_answered:
            os._exit(1)
        self._has_answered = True
        return super().state(known, is_last=is_last)

    _has_answered = False


def test_who_answers_once_and_dies_is_not_started_again_and_again_at_once(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuner_care, "Tuner", LastWords)
    monkeypatch.setattr(tuner_care, "ASK_EVERY_S", 0.0)
    waits: list[float] = []

    class Noted(BackOff):
        def wait_s(self, *, lived_s: float) -> float:
            waits.append(super().wait_s(lived_s=lived_s))
            return 0.0  # but let us not wait for it here

    monkeypatch.setattr(tuner_care, "BackOff", Noted)
    care = TunerSupervisor(replace(plan, tuning=sw.Tuning(policy="500ms")))
    care.start(slots_of(plan))
    until(lambda: care.look(0.1) or len(waits) == 3, within_s=3 * SOON_S, what="three deaths")
    care.end()
    assert waits == [0, 1, 2]


def test_a_tuner_that_is_dead_at_the_end_is_told_of_in_the_report(plan: Plan) -> None:
    care = TunerSupervisor(replace(plan, tuning=sw.Tuning(policy="500ms")))
    care.start(slots_of(plan))
    until(lambda: care.look(0.1) or care.pids, within_s=SOON_S, what="the tuner")
    assert care._tuner is not None
    assert deadline_notes(plan, care.report()) == []
    ray.kill(care._tuner.actor)
    care.finish()
    (note,) = deadline_notes(plan, care.report())
    assert "did not answer as the job ended" in note


def test_a_tuner_that_answers_at_the_end_leaves_no_note(plan: Plan) -> None:
    care = TunerSupervisor(replace(plan, tuning=sw.Tuning(policy="500ms")))
    care.start(slots_of(plan))
    until(lambda: care.look(0.1) or report_of(care).seconds, within_s=SOON_S, what="a second")
    care.finish()
    report = report_of(care)
    assert (report.seconds, deadline_notes(plan, report)) == (SECONDS, [])


def test_who_is_ended_from_another_thread_starts_no_other(plan: Plan) -> None:
    care = TunerSupervisor(replace(plan, tuning=sw.Tuning(policy="500ms")))
    care.start(slots_of(plan))
    tuner = care._tuner
    assert tuner is not None
    actor = tuner.actor
    care.end()
    care._tuner, tuner._actor = tuner, actor  # as `look` has it when `end` comes in between
    until(lambda: care.look(0.1) or care._again_s, within_s=SOON_S, what="its death to be seen")
    care.look()
    assert care._tuner is None
    assert report_of(care).restarts == 0


def process_of(care: TunerSupervisor) -> ProcessIdentity | None:
    assert care._tuner is not None
    assert care._tuner._folder is not None
    return ProcessIdentity.read(tuner_process._note_in(care._tuner._folder.name))


def test_a_tuner_that_never_spoke_and_is_stuck_in_native_code_is_gone_when_it_is_ended(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuner_care, "Tuner", StuckTuner)
    care = TunerSupervisor(replace(plan, tuning=sw.Tuning()))
    care.start(slots_of(plan))
    process = until(lambda: process_of(care), within_s=SOON_S, what="the note of its process")
    there = psutil.Process(process.pid)
    until(lambda: there.cpu_times().user > 0 and there.num_threads(), within_s=SOON_S, what="it")
    there.suspend()
    care.end()
    assert care.pids == []
    assert start_of(process.pid) is None


def test_a_head_that_hangs_keeps_no_tuner_alive_and_holds_nobody_up(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuner_process, "KILL_S", 0.2)
    care = TunerSupervisor(replace(plan, tuning=sw.Tuning(policy="500ms")))
    care.start(slots_of(plan))
    until(lambda: care.look(0.1) or care.pids, within_s=SOON_S, what="the tuner")
    lines = command_lines(below())
    (head,) = (one for one, line in lines.items() if line.split(" ")[0].endswith("gcs_server"))
    head.suspend()
    try:
        with monkeypatch.context() as soon:
            soon.setattr(tuner_care, "SILENT_S", -1.0)
            os.kill(care.pids[0], signal.SIGSTOP)
            until(
                lambda: within(SOON_S, care.look, what="what its tuner does") or care._again_s,
                within_s=SOON_S,
                what="a tuner that hangs to be given up",
            )
        assert start_of(care.pids[0]) is None  # at most a zombie
        within(SOON_S, care.look, what="that another one is to come")
        assert report_of(care).restarts == 1
    finally:
        head.resume()
    until(lambda: care.look(0.1) or len(care.pids) > 1, within_s=SOON_S, what="another tuner")
    head.suspend()
    try:
        within(SOON_S, care.end, what="that it has ended")
        assert start_of(care.pids[1]) is None
    finally:
        head.resume()

"""A job that recovers in virtual time: its rows are those of a run without faults."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from slackwater.report.render import report_text
from slackwater.runtime.errors import OperatorError, SlackwaterError, WorkerDied
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.simulate import (
    Checkpoints,
    CostModel,
    Fault,
    HostFallsSilent,
    LinkModel,
    Simulation,
    SlotDies,
    SlotRaises,
    UserStops,
)
from slackwater.runtime.simulate.ordinal_sinks import OrdinalSinks
from tests.support.any_flow import MS, any_flow

SEED = 137
"""Of a ready-only flow in three slots, whose sinks have one writer each; it takes two seconds."""
S = 1_000_000_000


class Run:
    """A run with checkpoints, and what its sinks have."""

    def __init__(
        self,
        faults: Sequence[Fault] = (),
        *,
        holds: bool = True,
        says_last: bool = True,
        every_ns: int = 200 * MS,
    ) -> None:
        self.plan: Plan = any_flow(SEED)
        names = [stage.name for stage in self.plan.stages if stage.kind == "sink"]
        self.sinks = OrdinalSinks(names, says_last=says_last)
        self.simulation = Simulation(
            self.plan,
            egress=self.sinks,
            seed=SEED,
            cost=CostModel(jitter=2.0),
            link=LinkModel(jitter_ns=20 * MS),
            faults=faults,
            checkpoints=Checkpoints(
                every_ns=every_ns,
                holds=frozenset(names) if holds else frozenset(),
                is_repeatable=not holds,
            ),
        )
        self.error: SlackwaterError | None = None

    def ended(self) -> JobReport:
        try:
            return self.simulation.run()
        except SlackwaterError as problem:
            self.error = problem
            return self.simulation.report()


@cache
def undisturbed() -> Run:
    """Return the run without faults, which has ended."""
    run = Run()
    run.ended()
    return run


def slots(number: int) -> str:
    return any_flow(SEED).slot_names[number]


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("says_last", [True, False])
def test_two_failures_in_a_row_change_no_row(holds: bool, says_last: bool) -> None:
    expected = undisturbed()
    faults = [SlotRaises(at_ns=S, slot=slots(0)), SlotDies(at_ns=S + 400 * MS, slot=slots(1))]
    run = Run(faults, holds=holds, says_last=says_last)
    report = run.ended()
    assert (report.state, imbalances(report)) == ("done", [])
    assert run.sinks.rows == expected.sinks.rows
    assert run.sinks.ended == set(expected.sinks.rows)
    assert {sink.name: sink.rows for sink in report.sinks} == {
        sink: len(rows) for sink, rows in run.sinks.rows.items()
    }
    assert not any(sink.already_committed for sink in report.sinks)
    assert len(report.recoveries) == 2
    assert all(recovery.gap_s for recovery in report.recoveries)
    assert "all slots went back to checkpoint" in report_text(report)


@pytest.mark.parametrize(("moment", "checkpoint"), [("mark", 2), ("commit", 3)])
@pytest.mark.parametrize("number", range(3))
def test_a_host_that_falls_silent_at_a_mark_or_a_commit_changes_no_row(
    moment: str, checkpoint: int, number: int
) -> None:
    expected = undisturbed()
    complete_ns = expected.simulation.marks.taken[3].at_ns
    at_ns = {"mark": 3 * 200 * MS + 1, "commit": complete_ns + 1}[moment]
    run = Run([HostFallsSilent(at_ns=at_ns, node=slots(number))])
    report = run.ended()
    assert run.simulation.strikes == [moment]
    assert (report.state, imbalances(report)) == ("done", [])
    assert [recovery.checkpoint for recovery in report.recoveries] == [checkpoint]
    assert run.sinks.rows == expected.sinks.rows


def test_the_end_of_held_rows_does_not_wait_for_the_interval() -> None:
    run = Run(every_ns=60 * S)
    assert run.ended().state == "done"
    assert run.simulation.marks.number == 1
    assert run.simulation.now_ns < 10 * S
    assert run.sinks.rows["counts"]


def test_a_third_failure_alike_ends_the_job_with_its_cause() -> None:
    run = Run(
        [SlotRaises(at_ns=n * S, slot=slots(0), said="no row") for n in range(9)], every_ns=S * 60
    )
    report = run.ended()
    assert isinstance(run.error, OperatorError)
    assert "no row (the job did not recover: 3 times, last from the start)" in str(run.error)
    assert (report.state, len(report.recoveries)) == ("failed", 2)
    assert report.error == str(run.error)


def test_held_rows_are_published_at_a_stop() -> None:
    run = Run([UserStops(at_ns=S)])
    report = run.ended()
    last = max(run.simulation.marks.taken.values(), key=lambda taken: taken.at_ns)
    assert report.state == "stopped"
    assert last.at_ns > S
    held = {
        sink: state for part in last.parts.values() for sink, state in part.results["held"].items()
    }
    meters = {s: m for part in last.parts.values() for s, m in part.results["meters"].items()}
    for sink, rows in run.sinks.rows.items():
        waiting = sum(len(batch["event_time_ns"]) for batch in held[sink]["batches"])
        assert len(rows) == meters[sink]["rows"] + waiting


def test_a_stop_while_the_job_recovers_ends_it_as_failed() -> None:
    run = Run([SlotRaises(at_ns=S, slot=slots(0)), UserStops(at_ns=S + 150 * MS)])
    report = run.ended()
    assert report.state == "failed"
    assert isinstance(run.error, OperatorError | WorkerDied)

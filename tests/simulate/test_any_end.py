"""Flows at random in which anything goes wrong at any time: each comes to one end, and says why."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

from slackwater.runtime.errors import ClusterError, OperatorError, SlackwaterError, WorkerDied
from slackwater.runtime.life import TimeLimits
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.simulate import (
    ClusterGoes,
    CostModel,
    Fault,
    HostFallsSilent,
    LinkModel,
    Simulation,
    SlotDies,
    SlotHangs,
    SlotRaises,
    any_faults,
)
from tests.support.any_flow import MS, any_flow

MANY = int(os.environ.get("ANY_ENDS", "0"))
"""Some thousand find what is rare."""
SEEDS = range(MANY or 80)
PARTS = 4
ONE_OF = 5  # is run again: that a seed gives one run does not hang on what goes wrong
WITHIN_NS = 3_000 * MS
TIME_LIMITS = TimeLimits()
LONGEST_S = sum(
    (
        TIME_LIMITS.settle_s,
        TIME_LIMITS.check_s,
        TIME_LIMITS.dead_s,
        TIME_LIMITS.stop_s,
        TIME_LIMITS.cut_off_s,
    )
)


class Ending(Simulation):
    """Counts how often the sinks of each slot are ended."""

    def __init__(self, *args: Any, closed: Counter[str], **options: Any) -> None:
        self._closed = closed
        super().__init__(*args, **options)

    def _end_sinks(self, slot: str, state: str, failure: str | None) -> str:
        self._closed[slot] += 1
        return super()._end_sinks(slot, state, failure)


class Run:
    """One flow, what goes wrong in it, and how it ended."""

    def __init__(self, seed: int) -> None:
        plan = any_flow(seed)
        self.faults = any_faults(plan, seed=seed, within_ns=WITHIN_NS)
        self.closed: Counter[str] = Counter()  # {slot: how often its sinks were ended}
        self.settled: list[str] = []  # sinks, as their streams ended
        self.written_late: list[str] = []
        self.one = Ending(
            plan,
            egress=self._egress,
            closed=self.closed,
            seed=seed,
            cost=CostModel(per_slice_ns=3 * MS, jitter=2.0),  # so that many are hit in a slice
            link=LinkModel(jitter_ns=20 * MS),
            faults=self.faults,
        )
        self._slots = plan.slots
        self.error: SlackwaterError | None = None
        try:
            self.report: JobReport = self.one.run()
        except SlackwaterError as problem:
            self.error, self.report = problem, self.one.report()

    def _egress(self, stage: str, _batch: object, is_end: bool) -> None:
        if is_end:
            self.settled.append(stage)
        elif stage in self.settled or self.closed[self._slots[stage]]:
            self.written_late.append(stage)

    def struck(self, *kinds: type[Any]) -> list[Any]:
        return [one for one in self.faults if isinstance(one, kinds)]


def gone(run: Run) -> set[str]:
    dead = {one.slot for one in run.struck(SlotDies)}
    return dead | {one.node for one in run.struck(HostFallsSilent)}


@pytest.mark.parametrize("part", range(PARTS))
def test_a_job_in_which_anything_goes_wrong_ends_once_in_time_and_names_one_cause(
    part: int,
) -> None:
    ends: Counter[str] = Counter()
    for seed in SEEDS[part::PARTS]:
        run = Run(seed)
        who = f"seed {seed}: {run.faults}: {run.report.job_events}"
        life = run.one._life.machine
        assert life.is_over, who
        assert run.report.state == life.status, who
        ends[type(run.error).__name__ if run.error else life.status] += 1
        # Every slot is stopped once, or hangs; and what has been closed is not written to.
        hung = {one.slot for one in run.struck(SlotHangs)}
        assert {slot for slot, times in run.closed.items() if times > 1} == set(), who
        assert {*run._slots.values()} - {*run.closed} <= hung, who
        assert run.written_late == [], who
        assert len({*run.settled}) == len(run.settled), who
        open_ones = {one for results in run.one._results.values() for one in results.open}
        assert {run._slots[sink] for sink in open_ones} <= hung, who
        last_s = max(one.at_ns for one in run.faults) / 1e9
        assert run.one.now_ns / 1e9 <= last_s + 8 + LONGEST_S, who
        assert imbalances(run.report) == [], who
        check_cause(run, who)
        if seed % ONE_OF == 0:
            assert run.report.to_json() == Run(seed).report.to_json(), who
    if not MANY:
        assert len(ends) >= 4, ends  # of done, stopped, and causes of three kinds


def check_cause(run: Run, who: str) -> None:
    error, report = run.error, run.report
    if error is None:
        assert (report.error, report.job_events) == (None, []), who
        assert report.state in ("done", "stopped"), who
        return
    assert (report.state, report.error) == ("failed", str(error)), who
    assert report.job_events, who
    notes = getattr(error, "__notes__", [])
    assert isinstance(error, OperatorError) or report.job_events[-1] in notes[0], who
    match error:
        case OperatorError():
            assert str(error) in {one.said for one in run.struck(SlotRaises)}, who
        case WorkerDied():
            named = {slot for slot in run._slots.values() if f"slot {slot!r} (stages" in str(error)}
            assert named, who
            assert named <= gone(run), who
        case ClusterError():
            assert run.struck(ClusterGoes), who
        case _:
            raise AssertionError(who) from error


def test_faults_are_drawn_alike_for_one_seed_and_of_every_kind_for_many() -> None:
    plan = any_flow(0)

    def drawn(seed: int) -> tuple[Fault, ...]:
        return any_faults(plan, seed=seed, within_ns=WITHIN_NS)

    assert drawn(7) == drawn(7)
    kinds = {type(one) for seed in range(50) for one in drawn(seed)}
    assert len(kinds) == 6

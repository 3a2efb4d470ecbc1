"""Report a slot to its job: its identity, and its counters."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from slackwater.actors.slot.user_output import OutputLine
from slackwater.runtime.measure.assemble import job_report
from slackwater.runtime.measure.prediction import PredictionReport
from slackwater.runtime.measure.report import (
    ChannelReport,
    ClockReport,
    JobReport,
    SinkReport,
    StageReport,
)
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.plan.plan import Plan


class SlotIdentity(NamedTuple):
    """A slot's process, and ids that it shares with other slots."""

    pid: int
    host: str | None
    """See `local_sockets.host_identity`."""
    clock: str | None
    """See `SlotClock.identity`."""
    ahead_ns: int = 0
    """See `SlotClock.ahead_ns`."""


@dataclass
class SlotReport:
    """A slot's share of the job's report."""

    slot: str
    state: str  # ready, running, done, stopped or failed
    stages: list[StageReport] = field(default_factory=list)
    channels: list[ChannelReport] = field(default_factory=list)
    sinks: list[SinkReport] = field(default_factory=list)
    error: str | None = None
    error_type: str | None = None
    recent: list[str] = field(default_factory=list)
    """The slot's last stimuli, in words."""
    at_ns: int | None = None
    """Reference's time of this report."""
    ended_ns: int | None = None
    """Reference's time of the end, after its sinks closed."""
    lost: list[str] = field(default_factory=list)
    """Channels whose other end was lost when this slot failed."""
    clock: ClockReport | None = None
    refused_peers: int = 0
    """Connections refused by its TCP sockets; see `actors/wire/refused_peers.py`."""
    notes: list[str] = field(default_factory=list)
    """Sentences for the job's report, such as on sources that do not return."""
    output: list[OutputLine] = field(default_factory=list)
    """At the end: lines of users' functions that were not yet taken."""


def stuck(report: SlotReport, at_work: str | None, now_ns: int) -> SlotReport:
    """Return the last report of a slot that does not answer, brought up to now.

    Args:
        report: last report of the slot.
        at_work: stage whose code runs; None if none does.
        now_ns: current time, by the plan's reference clock.
    """
    passed_ns = 0 if report.at_ns is None else now_ns - report.at_ns
    stages = [
        replace(
            stage,
            still_ns=_grown(stage, passed_ns, is_at_work=stage.name == at_work),
            due_in_ns=None,  # it may be due by now
            is_stuck=stage.name == at_work,
        )
        for stage in report.stages
    ]
    return replace(report, stages=stages)


def _grown(stage: StageReport, passed_ns: int, *, is_at_work: bool) -> int | None:
    if stage.still_ns is None:  # the stage has ended, but its sink may not return
        return passed_ns if is_at_work else None
    return stage.still_ns + passed_ns


def put_together(
    plan: Plan,
    parts: Sequence[SlotReport],
    *,
    state: str,
    elapsed_s: float,
    error: Exception | None,
    notes: Sequence[str],
    tuning: TuningReport | None,
    prediction: PredictionReport | None = None,
) -> JobReport:
    """Return the job's report.

    Args:
        plan: plan of the job.
        parts: last reports of its slots, in their order; silent slots are missing.
        state: state of the job.
        elapsed_s: seconds since its sources began.
        error: reason why it has failed.
        notes: notes of the job; notes of its slots follow.
        tuning: report of its tuner.
        prediction: its prediction and the outcome, if one was made.
    """
    return job_report(
        plan,
        state=state,
        host="ray",
        nodes=plan.nodes,
        elapsed_s=elapsed_s,
        stages=[stage for part in parts for stage in part.stages],
        channels=[channel for part in parts for channel in part.channels],
        sinks=[sink for part in parts for sink in part.sinks],
        error=None if error is None else str(error),
        notes=[*notes, *[note for part in parts for note in part.notes]],
        clocks={part.slot: part.clock for part in parts if part.clock is not None},
        refused_peers=sum(part.refused_peers for part in parts),
        tuning=tuning,
        prediction=prediction,
        unreported=_unreported(plan, parts) if state in ("failed", "stopped") else (),
    )


def _unreported(plan: Plan, parts: Sequence[SlotReport]) -> list[str]:
    """Return the slots with stages whose last report is older than their end."""
    reported = {part.slot for part in parts if part.state not in ("ready", "running")}
    return [slot for slot in plan.slot_names if plan.stages_of(slot) and slot not in reported]


LOOK_S = 1.0
"""Greatest age of news when told. A killed worker leaves no more than this."""


class News:
    """The loop's note of its last work, and the one thread that waits for it.

    So a caller that wants a slot's news leaves a call with it: a Ray call costs the slot's process
    a millisecond, a check 50 µs, and the loop's note next to nothing.

    Attributes:
        quiet_since_ns: set by the loop: while it sleeps, when it last had work; None if it
            works, also within a slice that hangs.
    """

    def __init__(self) -> None:
        self.quiet_since_ns: int | None = None
        self._reported_ns = -1

    def wait(self, within_s: float, *, over: threading.Event) -> None:
        """Return when there is news, the slot is over, or `within_s` has passed."""
        until_s = time.monotonic() + within_s
        while (
            self.quiet_since_ns == self._reported_ns and (left_s := until_s - time.monotonic()) > 0
        ):
            if over.wait(min(left_s, LOOK_S)):
                break
        quiet_ns = self.quiet_since_ns
        self._reported_ns = -1 if quiet_ns is None else quiet_ns

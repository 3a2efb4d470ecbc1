"""What deciders want of slots while a job runs; `Slot.apply` alone carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from slackwater.runtime.measure.trials import Trial
from slackwater.runtime.model import ReleaseRule


@dataclass(frozen=True, slots=True)
class SetRelease:
    """Let a gate release by another rule: setSLT of [ssg] §4.1, §4.2 SLTsetter.

    Attributes:
        stage: whose gate.
        rule: the new one.
        by: who decided: the name of a policy, or which of its rules.
        trials: other rules, of which only account is kept: what they would have let go.
    """

    stage: str
    rule: ReleaseRule
    by: str = ""
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """Let a stage go on in another slot. A slot cannot do that by itself: `Job.replace` can.

    Attributes:
        stage: which.
        slot: where to.
        by: who decided.
    """

    stage: str
    slot: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Shed:
    """Let a stage that sheds reckon with what events still take behind it.

    So that the bound is on the latency of the flow, and not of one queue.

    Attributes:
        stage: which; it has `shed=`.
        rest_ns: from what leaves the stage to egress, at most, in the time to come.
        by: who decided.
    """

    stage: str
    rest_ns: int
    by: str = ""


@dataclass(frozen=True, slots=True)
class Warn:
    """Say something of a stage in the job's report; no slot is told.

    Attributes:
        stage: of which.
        text: what.
        by: who decided.
    """

    stage: str
    text: str
    by: str = ""


Command: TypeAlias = SetRelease | Move | Shed | Warn


def refusal(command: Move | Warn) -> str:
    """Return why no slot carries a command out, and what to do instead."""
    match command:
        case Move(stage, slot):
            return (
                f"stage {stage!r} cannot move to slot {slot!r} while it runs, as no slot can do "
                "that by itself; let the job do it: job.replace({stage: slot})"
            )
        case Warn(stage):
            return f"a warning of stage {stage!r} is for the job's report, and no slot is told"

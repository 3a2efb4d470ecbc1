"""Commands of deciders to slots of a running job; only `Slot.apply` carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from slackwater.runtime.measure.trials import Trial
from slackwater.runtime.model import ReleaseRule


@dataclass(frozen=True, slots=True)
class SetRelease:
    """Set the release rule of a gate: setSLT of [ssg] §4.1, §4.2 SLTsetter.

    Attributes:
        stage: the gate's stage.
        rule: the new rule.
        by: name of the policy that decided, or of one of its rules.
        trials: rules that are only counted: which rows they would have released.
    """

    stage: str
    rule: ReleaseRule
    by: str = ""
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """Move a stage to another slot. No slot can do that by itself; `Job.replace` can.

    Attributes:
        stage: its name.
        slot: the slot to move to.
        by: name of the decider.
    """

    stage: str
    slot: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Shed:
    """Tell a stage that sheds how long events take downstream of it.

    So its bound is on the latency of the flow, not of one queue.

    Attributes:
        stage: its name; it has `shed=`.
        rest_ns: longest expected time from leaving the stage to egress.
        by: name of the decider.
    """

    stage: str
    rest_ns: int
    by: str = ""


@dataclass(frozen=True, slots=True)
class Warn:
    """Add a warning about a stage to the job's report; no slot is told.

    Attributes:
        stage: its name.
        text: the warning.
        by: name of the decider.
    """

    stage: str
    text: str
    by: str = ""


Command: TypeAlias = SetRelease | Move | Shed | Warn


def refusal(command: Move | Warn) -> str:
    """Return why no slot can carry out a command, and what to do instead."""
    match command:
        case Move(stage, slot):
            return (
                f"stage {stage!r} cannot move to slot {slot!r} while it runs, as no slot can do "
                "that by itself; let the job do it: job.replace({stage: slot})"
            )
        case Warn(stage):
            return f"a warning of stage {stage!r} is for the job's report, and no slot is told"

"""Commands of deciders to slots of a running job; only `Slot.apply` carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from slackwater.runtime.measure.trials import Trial
from slackwater.runtime.model import ReleaseRule
from slackwater.runtime.model.subject import Subject


@dataclass(frozen=True, slots=True)
class SetRelease:
    """Set the release rule of a gate: setSLT of [ssg] §4.1, §4.2 SLTsetter.

    Attributes:
        subject: the step with the gate.
        rule: the new rule.
        by: name of the policy that decided, or of one of its rules.
        trials: rules that are only counted: which rows they would have released.
    """

    subject: Subject
    rule: ReleaseRule
    by: str = ""
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """Move a part to another slot. No slot can do that by itself; `Job.replace` can.

    Attributes:
        subject: the part, or a step that is one stage.
        slot: the slot to move to.
        by: name of the decider.
    """

    subject: Subject
    slot: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Shed:
    """Tell a step that sheds how long events take downstream of it.

    So its bound is on the latency of the flow, not of one queue.

    Attributes:
        subject: the step; it has `shed=`.
        rest_ns: longest expected time from leaving the step to egress.
        by: name of the decider.
    """

    subject: Subject
    rest_ns: int
    by: str = ""


@dataclass(frozen=True, slots=True)
class Warn:
    """Add a warning about a step to the job's report; no slot is told.

    Attributes:
        subject: the step.
        text: the warning.
        by: name of the decider.
    """

    subject: Subject
    text: str
    by: str = ""


Command: TypeAlias = SetRelease | Move | Shed | Warn


def refusal(command: Move | Warn) -> str:
    """Return why no slot can carry out a command, and what to do instead."""
    match command:
        case Move(subject, slot):
            return (
                f"stage {subject.name!r} cannot move to slot {slot!r} while it runs, as no slot "
                "can do that by itself; let the job do it: job.replace({stage: slot})"
            )
        case Warn(subject):
            return (
                f"a warning of step {subject.name!r} is for the job's report, and no slot is told"
            )

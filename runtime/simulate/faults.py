"""Faults of a simulated job at virtual times, given or drawn by a seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from slackwater.runtime.calls import checked_fields
from slackwater.runtime.errors import SettingError
from slackwater.runtime.plan.plan import Plan

__all__ = [
    "ClusterGoes",
    "Fault",
    "HostFallsSilent",
    "SlotDies",
    "SlotHangs",
    "SlotRaises",
    "UserStops",
    "any_faults",
    "check_faults",
]


@dataclass(frozen=True, kw_only=True)
class _At:
    at_ns: int
    """Virtual time since the start of the job."""


@checked_fields
@dataclass(frozen=True, kw_only=True)
class SlotDies(_At):
    """The process of a slot dies at once."""

    slot: str
    reason: str = "its process was killed"


@checked_fields
@dataclass(frozen=True, kw_only=True)
class HostFallsSilent(_At):
    """A node falls silent, and the cluster does not report it."""

    node: str


@checked_fields
@dataclass(frozen=True, kw_only=True)
class SlotRaises(_At):
    """A user's function in a slot raises; `said` is the error's text."""

    slot: str
    said: str = "its function raised an error"


@checked_fields
@dataclass(frozen=True, kw_only=True)
class SlotHangs(_At):
    """A user's function in a slot never returns, not even for a stop."""

    slot: str


@checked_fields
@dataclass(frozen=True, kw_only=True)
class ClusterGoes(_At):
    """The cluster is gone; living slots do not notice."""

    what: str = "the head of the cluster is gone"


@checked_fields
@dataclass(frozen=True, kw_only=True)
class UserStops(_At):
    """The user stops the job."""


Fault: TypeAlias = SlotDies | HostFallsSilent | SlotRaises | SlotHangs | ClusterGoes | UserStops


def check_faults(plan: Plan, faults: tuple[Fault, ...]) -> None:
    """Check that faults can happen to a plan.

    Raises:
        SettingError: a fault names a slot or a node that the plan does not use, or a time < 0.
    """
    for fault in faults:
        name = getattr(fault, "slot", getattr(fault, "node", None))
        if name is not None and name not in plan.slot_names:
            raise SettingError(f"{fault}: the plan has only {', '.join(plan.slot_names)}")
        if fault.at_ns < 0:
            raise SettingError(
                f"{fault}: at_ns must be 0 or more, counted from the start of the job"
            )


def any_faults(plan: Plan, *, seed: int, within_ns: int) -> tuple[Fault, ...]:
    """Return one to three faults within a time, equal for equal seeds."""
    chance = Random(seed)  # noqa: S311 - a draw, not a secret
    faults: list[Fault] = []
    for _ in range(chance.choice([1, 1, 2, 3])):
        slot, at_ns = chance.choice(plan.slot_names), chance.randrange(within_ns)
        kind = chance.choice([SlotDies, SlotDies, SlotRaises, SlotHangs, HostFallsSilent, None])
        if kind is None:
            faults.append(chance.choice([UserStops, ClusterGoes])(at_ns=at_ns))
        elif kind is HostFallsSilent:
            faults.append(HostFallsSilent(node=slot, at_ns=at_ns))
        else:
            faults.append(kind(slot=slot, at_ns=at_ns))  # type: ignore[call-arg]
    # A slot that hangs is not reported: without a stop such a job stands still for ever.
    last_ns = max(fault.at_ns for fault in faults)
    return (*faults, UserStops(at_ns=last_ns + within_ns))

"""Cause of a job's failure in words: which slot, where, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from slackwater.runtime import errors
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.life.stimuli import SlotEnded
from slackwater.runtime.model import format_ns
from slackwater.runtime.plan.plan import Plan

__all__ = [
    "DEATH",
    "Cause",
    "Failure",
    "HomeNode",
    "failure_report",
    "lost_cluster",
    "parted_report",
    "silent_peers",
    "stalled_report",
]

DEATH = "WorkerDied"
"""Kind of error by which a slot reports that another is gone: never the cause by itself."""
_STOPPED = "The job was stopped; sinks hold whole batches only"
_LONGER = (
    f"{_STOPPED}. Mend that, or allow longer pauses with Limits(lost_ns=…), and submit the flow "
    "again"
)
_WITH_HISTORY = {
    *("ClusterError", "FrameError", "JobStopped", "LedgerError", "SlackwaterError", "WorkerDied")
}
"""Kinds of error that need the history before them; all others name what to fix."""


@dataclass(frozen=True, slots=True)
class HomeNode:
    """Node that a slot runs on.

    Attributes:
        node_id: unique in the cluster.
        name: name of the node, for people.
        ip: address of its host.
    """

    node_id: str
    name: str
    ip: str


class Failure(NamedTuple):
    """Failure in words.

    Attributes:
        fact: event that has happened.
        way_out: remedy, if the job ends by it.
    """

    fact: str
    way_out: str

    @property
    def text(self) -> str:
        """Text of an error by which a job ends."""
        return f"{self.fact}. {self.way_out}"


@dataclass(frozen=True, slots=True)
class Cause:
    """Cause of a job's failure.

    A job that goes on by itself tells the message alone.

    Attributes:
        kind: name of the error class, of Slackwater or another.
        message: event that has happened; if user code raised, the whole text of its error.
        slots: slots whose end it was; empty if the cluster is gone.
        way_out: remedy, if the job ends; empty if the message has it.
    """

    kind: str
    message: str
    slots: tuple[str, ...] = ()
    way_out: str = ""

    @property
    def text(self) -> str:
        """Message of the error by which a job ends."""
        return Failure(self.message, self.way_out).text if self.way_out else self.message

    def error(self, heard: Iterable[str] = (), given: Iterable[str] = ()) -> SlackwaterError:
        """Return the error to raise.

        Its notes are the last stimuli of the job and of its slot. An error of a user's function,
        input or output has no notes. The report has them in any case.
        """
        kind = getattr(errors, self.kind, SlackwaterError)
        error: SlackwaterError = kind(self.text)
        if kind.__name__ not in _WITH_HISTORY:
            return error
        if lines := list(heard):
            error.add_note("\n  ".join(["(the last that the job heard, in seconds:", *lines]) + ")")
        if lines := list(given):
            error.add_note("\n  ".join(["(the last that the slot was given:", *lines]) + ")")
        return error


def silent_peers(
    plan: Plan,
    failed: Iterable[SlotEnded],
    living: Collection[str],
    homes: Mapping[str, HomeNode],
) -> dict[str, str]:
    """Return {slot: why it must be gone}, of slots that others lost.

    A slot that lost a peer reports it; the peer that reports nothing is gone or stands still,
    even when the cluster does not know it yet.

    Args:
        plan: plan of the job.
        failed: ends of slots that failed because a peer was lost.
        living: slots that have neither ended nor died as far as is known.
        homes: {slot: name of its node}.
    """
    silent: dict[str, str] = {}
    ends = {channel.name: channel for channel in plan.channels}
    for end in failed:
        for name in end.lost:
            sides = {plan.slots[ends[name].source], plan.slots[ends[name].target]}
            for slot in sorted((sides - {end.slot}) & set(living)):
                silent.setdefault(
                    slot,
                    f"slot {end.slot!r} on host {homes[end.slot].ip} hears nothing from it "
                    f"any more (channel {name!r})",
                )
    return silent


def stalled_report(
    plan: Plan, silent: Mapping[str, str], states: Mapping[str, str], homes: Mapping[str, HomeNode]
) -> Failure:
    """Return the failure of slots whose processes are there, and silent.

    Args:
        plan: plan of the job.
        silent: {slot: who hears nothing from it}.
        states: {slot: state of its process}, of each.
        homes: {slot: name of its node}.
    """
    lines = [
        f"the worker of {_place_of(plan, slot, homes)} gave no sign of life for "
        f"{format_ns(plan.limits.lost_ns)}: {reason}; {states[slot]}"
        for slot, reason in silent.items()
    ]
    return Failure("; ".join(lines), _LONGER)


def parted_report(
    plan: Plan, failed: Iterable[SlotEnded], homes: Mapping[str, HomeNode]
) -> Failure | None:
    """Return the failure of two slots that lost each other, and both live.

    None if no two slots say so.

    Args:
        plan: plan of the job.
        failed: ends of slots that failed because a peer was lost, the first first.
        homes: {slot: name of its node}.
    """
    losers = {end.slot: end for end in failed}
    sides = {c.name: {plan.slots[c.source], plan.slots[c.target]} for c in plan.channels}
    for end in losers.values():
        for name in end.lost:
            for other in sides[name] - {end.slot}:
                if name in getattr(losers.get(other), "lost", ()):
                    return Failure(
                        f"{_place_of(plan, end.slot, homes)} heard nothing from "
                        f"{_place_of(plan, other, homes)} for {format_ns(plan.limits.lost_ns)} "
                        f"(channel {name!r}), and that one is there: its process stood still "
                        "(SIGSTOP, a snapshot of its machine, swap), or the link between them was "
                        "cut",
                        _LONGER,
                    )
    return None


def _place_of(plan: Plan, slot: str, homes: Mapping[str, HomeNode]) -> str:
    stages = ", ".join(stage.name for stage in plan.stages_of(slot))
    return f"slot {slot!r} (stages: {stages}) on node {homes[slot].name} (host {homes[slot].ip})"


def failure_report(
    plan: Plan,
    deaths: Mapping[str, str],
    homes: Mapping[str, HomeNode],
    *,
    lost: Collection[str],
    own: Collection[str] = (),
) -> Failure:
    """Return the failure of slots that died.

    Args:
        plan: plan of the job.
        deaths: {slot: known reason of its end}.
        homes: {slot: name of its node}.
        lost: ids of nodes that do not answer.
        own: slots that code inside them has ended.
    """
    lines = []
    for name, reason in deaths.items():
        stages = ", ".join(stage.name for stage in plan.stages_of(name))
        home = homes[name]
        lines.append(
            f"the worker of slot {name!r} (stages: {stages}) died on node {home.name} "
            f"(host {home.ip}): {reason}"
        )
    gone = sorted({homes[name].name for name in deaths if homes[name].node_id in lost})
    if gone:
        do = (
            f"Bring {', '.join(gone)} back, or do without (`ray status` tells which nodes are up; "
            "place its stages elsewhere with placement=)"
        )
    elif set(deaths) <= set(own):
        do = "Mend the code that did it, or do without it"
    else:
        do = "If it was short of memory or killed by hand, mend that"
    return Failure("; ".join(lines), f"{_STOPPED}. {do}, and submit the flow again")


def lost_cluster(gone: str) -> str:
    """Return the message to the user about a lost cluster; `gone` says why."""
    return (
        f"{gone}. This process goes on without the cluster: start local nodes again, or see with "
        "`ray status` whether a cluster of yours is up, and connect to it; then submit the flow "
        "again"
    )

"""What ended a job, in words: who, where, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from slackwater.runtime import errors
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.life.stimuli import SlotEnded
from slackwater.runtime.plan.plan import Plan

__all__ = [
    "DEATH",
    "Cause",
    "HomeNode",
    "failure_report",
    "lost_cluster",
    "silent_peers",
]

DEATH = "WorkerDied"
"""The kind of error by which a slot says that another is gone: never the cause by itself."""
_WITH_HISTORY = {
    *("ClusterError", "FrameError", "JobStopped", "LedgerError", "SlackwaterError", "WorkerDied")
}
"""Kinds that do not tell by themselves what went before: all others name what is to be mended."""


@dataclass(frozen=True, slots=True)
class HomeNode:
    """The node that a slot runs on.

    Attributes:
        node_id: unique in the cluster.
        name: for people.
        ip: of its host.
    """

    node_id: str
    name: str
    ip: str


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a job has failed.

    Attributes:
        kind: the name of an error class of ours, else of another.
        said: what the user is told.
        slots: whose end it was; none: the cluster's.
    """

    kind: str
    said: str
    slots: tuple[str, ...] = ()

    def error(self, heard: Iterable[str] = (), given: Iterable[str] = ()) -> SlackwaterError:
        """Return the error to be raised.

        Its notes are what the job heard last, and its slot; none where a user's own function,
        input or output is the cause. The report has them in any case.
        """
        kind = getattr(errors, self.kind, SlackwaterError)
        made: SlackwaterError = kind(self.said)
        if kind.__name__ not in _WITH_HISTORY:
            return made
        if lines := list(heard):
            made.add_note("\n  ".join(["(the last that the job heard, in seconds:", *lines]) + ")")
        if lines := list(given):
            made.add_note("\n  ".join(["(the last that the slot was given:", *lines]) + ")")
        return made


def silent_peers(
    plan: Plan,
    failed: Iterable[SlotEnded],
    living: Collection[str],
    homes: Mapping[str, HomeNode],
) -> dict[str, str]:
    """Return {slot: why it must be gone} of slots that others lost and that have not ended.

    A slot that lost a peer says so by itself, since it can be asked; the peer that says nothing
    is the one that is gone, even when the cluster does not know it yet.

    Args:
        plan: the job's.
        failed: the ends of slots that failed for want of a peer.
        living: slots that have neither ended nor died as far as is known.
        homes: {slot: its node}.
    """
    found: dict[str, str] = {}
    ends = {channel.name: channel for channel in plan.channels}
    for end in failed:
        for name in end.lost:
            sides = {plan.slots[ends[name].source], plan.slots[ends[name].target]}
            for slot in sorted((sides - {end.slot}) & set(living)):
                found.setdefault(
                    slot,
                    f"slot {end.slot!r} on host {homes[end.slot].ip} hears nothing from it "
                    f"any more (channel {name!r}), and it does not answer",
                )
    return found


def failure_report(
    plan: Plan,
    deaths: Mapping[str, str],
    homes: Mapping[str, HomeNode],
    *,
    lost: Collection[str],
    own: Collection[str] = (),
) -> str:
    """Return what the user is told of slots that died.

    Args:
        plan: the job's.
        deaths: {slot: what is known of its end}.
        homes: {slot: its node}.
        lost: ids of nodes that do not answer.
        own: slots that their own code has ended.
    """
    lines = []
    for name, reason in deaths.items():
        stages = ", ".join(stage.name for stage in plan.stages_of(name))
        home = homes[name]
        lines.append(
            f"the worker of slot {name!r} (stages: {stages}) died on node {home.name} "
            f"(host {home.ip}): {reason}"
        )
    said = "; ".join(lines) + ". The job was stopped; sinks hold whole batches only. "
    gone = sorted({homes[name].name for name in deaths if homes[name].node_id in lost})
    if gone:
        return (
            f"{said}Bring {', '.join(gone)} back, or do without (`ray status` tells which nodes "
            "are up; place its stages elsewhere with placement=), and submit the flow again"
        )
    if set(deaths) <= set(own):
        return f"{said}Mend the code that did it, or do without it, and submit the flow again"
    return (
        f"{said}If it was short of memory or killed by hand, mend that, and submit the flow again"
    )


def lost_cluster(gone: str) -> str:
    """Return what the user is told of a cluster that is gone; `gone` says what it was and why."""
    return (
        f"{gone}. This process goes on without the cluster; start it again, or find out with "
        "`ray status` whether it is up, then connect to it anew and submit the flow again"
    )

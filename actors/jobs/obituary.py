"""What ended a job whose workers or hosts are gone, in words: who, where, what to do.

`actors/jobs/job.py` asks, once the settling time is over; nothing here calls Ray.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from actors.nodes.placement import NodeInfo
from actors.slot.report import SlotReport
from runtime.plan.plan import Plan

__all__ = ["obituary", "silent_peers"]


def silent_peers(
    plan: Plan, failed: Sequence[SlotReport], living: Collection[str], hosts: Mapping[str, NodeInfo]
) -> dict[str, str]:
    """Return {slot: why it must be gone} of slots that others lost and that have not ended.

    A slot that lost a peer says so by itself, since it can be asked; the peer that says nothing
    is the one that is gone, even when Ray does not know it yet.

    Args:
        plan: the job's.
        failed: the reports of slots that failed for want of a peer.
        living: slots that have neither ended nor died as far as Ray knows.
        hosts: {slot: its node}.
    """
    found: dict[str, str] = {}
    ends = {channel.name: channel for channel in plan.channels}
    for report in failed:
        for name in report.lost:
            sides = {plan.slots[ends[name].source], plan.slots[ends[name].target]}
            for slot in (sides - {report.slot}) & set(living):
                found.setdefault(
                    slot,
                    f"slot {report.slot!r} on host {hosts[report.slot].ip} hears nothing from it "
                    f"any more (channel {name!r}), and it does not answer",
                )
    return found


def obituary(
    plan: Plan, deaths: Mapping[str, str], hosts: Mapping[str, NodeInfo], *, lost: Collection[str]
) -> str:
    """Return what the user is told.

    Args:
        plan: the job's.
        deaths: {slot: what is known of its end}.
        hosts: {slot: its node}.
        lost: ids of nodes that do not answer.
    """
    lines = []
    for name, reason in deaths.items():
        stages = ", ".join(stage.name for stage in plan.stages_of(name))
        node = hosts[name]
        lines.append(
            f"the worker of slot {name!r} (stages: {stages}) died on node {node.name} "
            f"(host {node.ip}): {reason}"
        )
    said = "; ".join(lines) + ". The job was stopped; sinks hold whole batches only. "
    gone = sorted({hosts[name].name for name in deaths if hosts[name].node_id in lost})
    if gone:
        return (
            f"{said}Bring {', '.join(gone)} back, or do without (`ray status` tells which nodes "
            "are up; place its stages elsewhere with placement=), and submit the flow again"
        )
    return (
        f"{said}If it was short of memory or killed by hand, mend that, and submit the flow again"
    )

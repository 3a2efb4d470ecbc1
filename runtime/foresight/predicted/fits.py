"""Reasons why a flow does not fit on the slots there are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from slackwater.runtime.foresight import LatencyEstimate
from slackwater.runtime.foresight.shared_cores import SharedCores
from slackwater.runtime.model.subject import GATE
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.plurals import agreeing, count_of

__all__ = ["divided", "why_it_does_not_fit"]

ROOM = 0.9
"""Largest load of a replica, in cores, so that bursts are worked off."""
TOLD = 3
"""Most stages that a text names."""


def why_it_does_not_fit(
    plan: Plan,
    found: LatencyEstimate,
    cores_by: Mapping[str, float],
    *,
    machines: Sequence[SharedCores] = (),
    is_searched: bool = False,
) -> str | None:
    """Return why these slots cannot do a flow's work; None if they can.

    Args:
        plan: plan of the flow.
        found: estimate of its latency.
        cores_by: {stage: cores that it needs at these rates}.
        machines: machines with fewer cores than slots in use.
        is_searched: whether a search has looked for a better placement.
    """
    if not found.is_unbounded:
        return None
    heavy = sorted((-cores, name) for name, cores in cores_by.items() if cores > 1)
    if heavy:
        each = "; ".join(_alone(plan, name, -cores) for cores, name in heavy[:TOLD])
        return f"{each}. More nodes do not help: a stage runs on one core"
    needed, offered = sum(cores_by.values()), plan.offered
    for machine in machines:
        here = sum(cores_by[name] for name in cores_by if plan.slots[name] in machine.slots)
        if here + machine.taken > machine.cores and machine.cores - machine.taken <= offered:
            return _too_few_cores(machine, here)
    if needed > offered > 0:
        slots = f"{agreeing(offered, 'is', 'are')} {count_of(offered, 'slot')}"
        least = math.ceil(needed / ROOM)
        return (
            f"its stages need {needed:.2f} cores at these rates, and there {slots} of "
            f"a core each: give it {least} or more (nodes, or cores of them), or lower rates"
        )
    if is_searched and found.bottleneck.name in plan.places:
        most = sorted(cores_by.items(), key=lambda each: -each[1])[: offered + 1]
        each = ", ".join(f"{name} {cores:.2f}" for name, cores in most)
        return (
            f"no placement was found in which each of {offered} slots keeps up: the largest stages "
            f"need {each} of a core; give it a slot more, or lower rates"
        )
    return None


def _too_few_cores(machine: SharedCores, needed: float) -> str:
    cores = count_of(machine.cores, "core")
    others = f", of which flows that run there take {machine.taken:.2f}" if machine.taken else ""
    least = math.ceil((needed + machine.taken) / ROOM)
    return (
        f"its stages on {machine.name} need {needed:.2f} cores at these rates, and it has "
        f"{cores}{others}, however many slots it offers: give it {least} cores or more, or more "
        "machines, or lower rates"
    )


def divided(stage: Stage, cores: float) -> str | None:
    """Return the setting for replicas of a stage; None if it cannot have any.

    Args:
        stage: the stage with too much work.
        cores: cores that it needs alone.
    """
    if stage.subject.part == GATE:
        return None  # all rows pass it, however many replicas follow
    replica, step = stage.replica, stage.step
    traits = step.traits
    is_divisible = traits.has_gate and (traits.reach_ns or all(traits.port_keys))
    if replica is None and not is_divisible:
        return None
    now = 0 if replica is None else replica.of
    wanted = math.ceil(cores * max(now, 1) / ROOM)
    return f"replicas={max(wanted, now + 1, 2)}"


def _alone(plan: Plan, name: str, cores: float) -> str:
    (stage,) = (each for each in plan.stages if each.name == name)
    way = divided(stage, cores)
    out = f"give it {way}, or" if way else "it cannot be divided:"
    return f"stage {name} alone needs {cores:.2f} cores at these rates: {out} lower its rate"

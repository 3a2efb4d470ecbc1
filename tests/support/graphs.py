"""Flow graphs as deciders see them, made without a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slackwater.runtime.control.graph import PlacedPart, StepNode
from slackwater.runtime.model.subject import GATE, Subject
from slackwater.runtime.tune import Paths


def node(name: str, slot: str, *more: str, inputs: tuple[str, ...] = (), **traits: Any) -> StepNode:
    """Return a step in a slot; with more slots its gate is in the first, a replica in each other.

    Args:
        name: of the step.
        slot: of its one stage, or of its gate.
        more: the slot of each replica.
        inputs: the steps that feed it.
        traits: as of `StepNode`.
    """
    parts = (PlacedPart(Subject(name), slot),)
    if more:
        replicas = [PlacedPart(Subject(name, n), each) for n, each in enumerate(more, 1)]
        parts = (PlacedPart(Subject(name, GATE), slot), *replicas)
    return StepNode(
        subject=Subject(name), parts=parts, inputs=tuple(map(Subject, inputs)), **traits
    )


def paths(inputs: Mapping[str, Sequence[str]], tuned: Sequence[str]) -> Paths:
    """Return the paths of steps by their names."""
    return Paths(
        {Subject(step): tuple(map(Subject, feeders)) for step, feeders in inputs.items()},
        tuple(map(Subject, tuned)),
    )

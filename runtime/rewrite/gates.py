"""Checks that a rewrite changes neither the rows of a gate nor their order."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from slackwater.runtime.errors import FlowError
from slackwater.runtime.model import READY_ONLY
from slackwater.runtime.plan.graph import StepGraph
from slackwater.runtime.plan.plan import Stage, plan_stages
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.steps import SourceStep

__all__ = ["check_gate", "check_orders"]


def check_gate(graph: StepGraph, step: GatedStep, *, who: str) -> None:
    """Check that fewer rows into a gate do not change the outcome of the others.

    Raises:
        FlowError: they may change it; says why, with `who`.
    """
    stage = _gates(graph)[step.name]
    reason = ""
    if step.traits.release != READY_ONLY:
        reason = (
            f"its gate releases by {step.traits.release.text}, so which rows are late there "
            "depends on which rows have come"
        )
    elif any(channel.may_be_late for channel in stage.inputs):
        reason = "rows may come too late there (idle=, or a slack further up), and are counted"
    elif step.traits.uses_clock or step.traits.changes == "revisions":
        reason = "it uses the clock, or releases rows again"
    elif step.traits.sharing.replicas > 1 and step.traits.sharing.share == "all":
        reason = "its replicas share rows by their number (share='all')"
    elif any("writers" in other.row_fields for other in stage.inputs) and _puts_together(step):
        reason = "its inputs have writers, whose order would change; merge after the filter"
    if reason:
        raise FlowError(f"{who} may not go before {step.name!r}: {reason}")


def check_orders(before: StepGraph, after: StepGraph, *, what: str) -> None:
    """Check that rows of one time leave every gate in the same order as before.

    It is the order of the stages that they come from, whether steps are fused or not.

    Raises:
        FlowError: the order differs.
    """
    if not _has_ties(before.steps.values()):
        return
    for fuse in (True, False):
        old, new = _gates(before, fuse=fuse), _gates(after, fuse=fuse)
        for name, stage in old.items():
            if _order(stage) != _order(new[name]):
                raise FlowError(
                    f"{what}: rows of one time would come to {name!r} in another order of its "
                    "inputs; omit this rewrite"
                )


class _Same:
    """Graph as a key of a cache, by identity: graphs are never changed."""

    def __init__(self, graph: StepGraph) -> None:
        self.graph = graph

    def __hash__(self) -> int:
        return id(self.graph)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.graph is self.graph


@lru_cache(maxsize=64)
def _gates_of(same: _Same, *, fuse: bool) -> dict[str, Stage]:
    stages = plan_stages(same.graph, fuse=fuse)
    return {s.subject.step: s for s in stages if s.is_gated and not s.shares_gate}


def _gates(graph: StepGraph, *, fuse: bool = True) -> dict[str, Stage]:
    return _gates_of(_Same(graph), fuse=fuse)


def _has_ties(steps: Iterable[Step]) -> bool:
    """Return whether a gate has several writers at one port."""
    for step in steps:
        if isinstance(step, GatedStep):
            if _puts_together(step) or step.traits.sharing.replicas > 1:
                return True
        elif isinstance(step, SourceStep) and step.source.has_writers:
            return True
    return False


def _puts_together(step: GatedStep) -> bool:
    """Whether some inputs of a gate come in at one port."""
    return len(set(step.traits.ports)) < len(step.traits.ports)


def _order(stage: Stage) -> tuple[object, ...]:
    inputs = stage.inputs
    order = sorted(range(len(inputs)), key=lambda at: (inputs[at].port, inputs[at].rank))
    own = ["writers" in channel.row_fields for channel in inputs]
    marks = [*zip(own, [channel.shares_writers for channel in inputs], strict=True)]
    return (*order, *marks) if any(own) else (*order,)

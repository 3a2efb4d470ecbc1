"""Graph of a flow as deciders see it: inputs, slots, and gates to set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slackwater.runtime.model import NS_PER_SECOND

if TYPE_CHECKING:
    from slackwater.runtime.plan.plan import Plan


@dataclass(frozen=True, kw_only=True)
class StageNode:
    """Stage of a flow graph.

    Attributes:
        name: its name in commands and samples.
        slot: the slot that runs it.
        node: the slot's node; empty: the slot is a node.
        inputs: stages that feed it, each once.
        is_tuned: whether the rule of its gate follows from the deadline.
        is_sink: whether results leave the flow at this stage.
        window_ns: SW of [ssg] §2.1: event time for which its state holds a row; 0 for stages
            without state.
        readers: |PThreads| of [ssg] Eq. 6: the replicas fed by its gate; 1 for other stages.
        sheds: whether it drops events under overload.
    """

    name: str
    slot: str
    inputs: tuple[str, ...] = ()
    is_tuned: bool = False
    is_sink: bool = False
    window_ns: int = 0
    readers: int = 1
    node: str = ""
    sheds: bool = False


@dataclass(frozen=True, kw_only=True)
class FlowGraph:
    """Stages of a flow; small enough to send, without inputs and functions.

    Attributes:
        flow: name of the flow.
        stages: in topological order.
        deadline_ns: the latency to keep; None if the flow has no deadline.
        interval_ns: length of a sample; what is called a second is one of these.
        versions: {stage: digest of its work on a row}, where samples are kept for later
            jobs; else empty.
    """

    flow: str
    stages: tuple[StageNode, ...]
    deadline_ns: int | None = None
    interval_ns: int = NS_PER_SECOND
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> FlowGraph:
        """Return the graph of a plan."""
        keeps_samples = plan.tuning is not None and plan.tuning.history is not None
        stages = [
            StageNode(
                name=stage.name,
                slot=plan.slots[stage.name],
                node=plan.places[plan.slots[stage.name]].node,
                inputs=tuple(dict.fromkeys(channel.source for channel in stage.inputs)),
                is_tuned=stage.is_tuned,
                is_sink=stage.kind == "sink",
                window_ns=stage.window_ns,
                readers=stage.readers,
                sheds=stage.sheds,
            )
            for stage in plan.stages
        ]
        return cls(
            flow=plan.flow,
            stages=tuple(stages),
            deadline_ns=plan.deadline_ns,
            interval_ns=plan.interval_ns,
            versions=_versions(plan) if keeps_samples else {},
        )

    @property
    def inputs(self) -> Mapping[str, tuple[str, ...]]:
        """Inputs of each stage, {stage: stages that feed it}, in topological order."""
        return {stage.name: stage.inputs for stage in self.stages}

    @property
    def tuned(self) -> tuple[str, ...]:
        """Stages whose rule follows from the deadline, in topological order."""
        return tuple(stage.name for stage in self.stages if stage.is_tuned)

    @property
    def sinks(self) -> tuple[str, ...]:
        """Stages at which results leave the flow."""
        return tuple(stage.name for stage in self.stages if stage.is_sink)

    @property
    def shedding(self) -> tuple[str, ...]:
        """Stages that drop events under overload, in topological order."""
        return tuple(stage.name for stage in self.stages if stage.sheds)

    @property
    def slots(self) -> Mapping[str, str]:
        """Slot of each stage."""
        return {stage.name: stage.slot for stage in self.stages}

    @property
    def nodes(self) -> Mapping[str, str]:
        """Node of each slot in use."""
        return {stage.slot: stage.node or stage.slot for stage in self.stages}

    @property
    def slot_names(self) -> tuple[str, ...]:
        """Slots in use, in order of first use."""
        return tuple(dict.fromkeys(stage.slot for stage in self.stages))


def _versions(plan: Plan) -> dict[str, str]:
    from slackwater.runtime.plan.stage_versions import stage_versions  # noqa: PLC0415 (a tuner has no plan)

    return stage_versions(plan.stages)

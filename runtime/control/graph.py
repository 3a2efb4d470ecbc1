"""A flow as those who decide see it: what feeds what, where it runs, and what may be set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slackwater.runtime.model import NS_PER_SECOND

if TYPE_CHECKING:
    from slackwater.runtime.plan.plan import Plan


@dataclass(frozen=True, kw_only=True)
class StageNode:
    """One stage.

    Attributes:
        name: what commands and samples call it.
        slot: where it runs.
        node: the node of that; empty: the slot is one.
        inputs: the stages that feed it, each once.
        is_tuned: whether the rule of its gate follows from the deadline.
        is_sink: whether results leave there.
        window_ns: SW of [ssg] §2.1: how long, in event time, a row stays in its state; 0 for stages
            without one.
        readers: |PThreads| of [ssg] Eq. 6: the replicas behind its gate; 1 for other stages.
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
    """The stages of a flow; small enough to be sent, as it knows no input and no function.

    Attributes:
        flow: its name.
        stages: in topological order.
        deadline_ns: the latency to keep; None: none.
        interval_ns: how long samples are; what is called a second is one of these.
        versions: {stage: a digest of what it does with a row}, where samples are kept for later
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
        """{stage: the stages that feed it}, in topological order."""
        return {stage.name: stage.inputs for stage in self.stages}

    @property
    def tuned(self) -> tuple[str, ...]:
        """The stages whose rule follows from the deadline, in topological order."""
        return tuple(stage.name for stage in self.stages if stage.is_tuned)

    @property
    def sinks(self) -> tuple[str, ...]:
        """The stages where results leave."""
        return tuple(stage.name for stage in self.stages if stage.is_sink)

    @property
    def shedding(self) -> tuple[str, ...]:
        """The stages that drop events under overload, in topological order."""
        return tuple(stage.name for stage in self.stages if stage.sheds)

    @property
    def slots(self) -> Mapping[str, str]:
        """{stage: its slot}."""
        return {stage.name: stage.slot for stage in self.stages}

    @property
    def nodes(self) -> Mapping[str, str]:
        """{slot in use: its node}."""
        return {stage.slot: stage.node or stage.slot for stage in self.stages}

    @property
    def slot_names(self) -> tuple[str, ...]:
        """The slots in use, in order of first use."""
        return tuple(dict.fromkeys(stage.slot for stage in self.stages))


def _versions(plan: Plan) -> dict[str, str]:
    from slackwater.runtime.plan.stage_versions import stage_versions  # noqa: PLC0415 (a tuner has no plan)

    return stage_versions(plan.stages)

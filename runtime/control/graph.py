"""Graph of a flow as deciders see it: steps, their inputs, and gates to set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from slackwater.runtime.control.commands import Command, SetRelease
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.model.subject import GATE, Subject
from slackwater.runtime.plan.parts import parts_of

if TYPE_CHECKING:
    from slackwater.runtime.plan.plan import Plan, Stage


class PlacedPart(NamedTuple):
    """Part of a step, which is a stage, and its slot.

    Attributes:
        subject: the part; its name is that of the stage.
        slot: the slot that runs it.
        node: the slot's node; empty: the slot is a node.
    """

    subject: Subject
    slot: str
    node: str = ""


@dataclass(frozen=True, kw_only=True)
class StepNode:
    """Step of a flow graph, with the stateless steps that follow in its stages.

    Attributes:
        subject: its name in commands and samples.
        parts: its stages: one, or a gate and its replicas.
        inputs: steps that feed it, each once.
        is_tuned: whether the rule of its gate follows from the deadline.
        is_sink: whether results leave the flow at this step.
        window_ns: SW of [ssg] §2.1: event time for which its state holds a row; 0 for steps
            without state.
        sheds: whether it drops events under overload.
    """

    subject: Subject
    parts: tuple[PlacedPart, ...]
    inputs: tuple[Subject, ...] = ()
    is_tuned: bool = False
    is_sink: bool = False
    window_ns: int = 0
    sheds: bool = False


@dataclass(frozen=True, kw_only=True)
class FlowGraph:
    """Steps of a flow; small enough to send, without inputs and functions.

    Attributes:
        flow: name of the flow.
        steps: steps of the flow, in topological order.
        deadline_ns: the latency to keep; None if the flow has no deadline.
        interval_ns: length of a sample; what is called a second is one of these.
        versions: {stage: digest of its work on a row}, where samples are kept for later
            jobs; else empty.
    """

    flow: str
    steps: tuple[StepNode, ...]
    deadline_ns: int | None = None
    interval_ns: int = NS_PER_SECOND
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> FlowGraph:
        """Return the graph of a plan."""
        keeps_samples = plan.tuning is not None and plan.tuning.history is not None
        steps = {stage.name: stage.subject.whole for stage in plan.stages}
        return cls(
            flow=plan.flow,
            steps=tuple(_node(step, plan, steps) for step in dict.fromkeys(steps.values())),
            deadline_ns=plan.deadline_ns,
            interval_ns=plan.interval_ns,
            versions=_versions(plan) if keeps_samples else {},
        )

    @property
    def inputs(self) -> Mapping[Subject, tuple[Subject, ...]]:
        """Inputs of each step, {step: steps that feed it}, in topological order."""
        return {step.subject: step.inputs for step in self.steps}

    @property
    def tuned(self) -> tuple[Subject, ...]:
        """Steps whose gate's rule follows from the deadline, in topological order."""
        return tuple(step.subject for step in self.steps if step.is_tuned)

    @property
    def sinks(self) -> tuple[Subject, ...]:
        """Steps at which results leave the flow."""
        return tuple(step.subject for step in self.steps if step.is_sink)

    @property
    def shedding(self) -> tuple[Subject, ...]:
        """Steps that drop events under overload, in topological order."""
        return tuple(step.subject for step in self.steps if step.sheds)

    @property
    def parts(self) -> tuple[PlacedPart, ...]:
        """Parts of all steps, in the order of the plan's stages."""
        return tuple(part for step in self.steps for part in step.parts)

    @property
    def slots(self) -> Mapping[str, str]:
        """Slot of each stage."""
        return {part.subject.name: part.slot for part in self.parts}

    @property
    def nodes(self) -> Mapping[str, str]:
        """Node of each slot in use."""
        return {part.slot: part.node or part.slot for part in self.parts}

    @property
    def slot_names(self) -> tuple[str, ...]:
        """Slots in use, in order of first use."""
        return tuple(dict.fromkeys(part.slot for part in self.parts))

    def parts_for(self, command: Command) -> list[PlacedPart]:
        """Return the parts that carry out a command; a slack is for gates."""
        parts = parts_of(command.subject, self.parts)
        if len(parts) == 1:
            return parts
        gates = [part for part in parts if part.subject.part == GATE]
        if gates and isinstance(command, SetRelease):
            return gates
        return [part for part in parts if part not in gates]


def _node(step: Subject, plan: Plan, steps: Mapping[str, Subject]) -> StepNode:
    stages: list[Stage] = parts_of(step, plan.stages)
    slots, feeders = plan.slots, [c.source for stage in stages for c in stage.inputs]
    return StepNode(
        subject=step,
        parts=tuple(
            PlacedPart(stage.subject, slots[stage.name], plan.places[slots[stage.name]].node)
            for stage in stages
        ),
        inputs=tuple(dict.fromkeys(steps[name] for name in feeders if steps[name] != step)),
        is_tuned=any(stage.is_tuned for stage in stages),
        is_sink=any(stage.kind == "sink" for stage in stages),
        window_ns=max(stage.window_ns for stage in stages),
        sheds=any(stage.sheds for stage in stages),
    )


def _versions(plan: Plan) -> dict[str, str]:
    from slackwater.runtime.plan.stage_versions import stage_versions  # noqa: PLC0415 (a tuner has no plan)

    return stage_versions(plan.stages)

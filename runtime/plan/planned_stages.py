"""Planned stages: the stages of each step, and traits of their rows, before channels exist.

`planned_of` is {step that begins a stage: the stages that its rows leave; several if it has
replicas}, and `heads` is {step: the step that begins its stage}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slackwater.runtime.errors import DuplicateName
from slackwater.runtime.model import ON_ARRIVAL, READY_ONLY
from slackwater.runtime.model.subject import GATE, Subject
from slackwater.runtime.plan.promises import OutputTraits, after_gate, of_source, without_gate
from slackwater.runtime.plan.step import GatedStep, Step, stage_kind
from slackwater.runtime.plan.steps import GateStep, LateStep, SinkStep, SourceStep
from slackwater.runtime.plan.traits import Replica, Role


@dataclass(frozen=True)
class LateOf:
    """Late rows of a step on a channel, beside its schema.

    Attributes:
        step: their step, as the user named it.
        columns: names of each port, {column: its name at the input}; None if the port's rows are
            omitted.
    """

    step: str
    columns: tuple[Mapping[str, str] | None, ...]


@dataclass(frozen=True)
class PlannedStage:
    """Stage without its channels."""

    subject: Subject
    """Its step as the user named it, or the part of it that the stage is."""
    number: int
    rank: int
    """Its number if stateless steps were fused: ties at a gate are in this order, fused or not."""
    step: Step
    chain: tuple[Step, ...]
    origin: Step
    """Step as the user wrote it."""
    gate: PlannedStage | None = None
    """Stage whose gate a replica shares; None if the stage is another one."""

    @property
    def name(self) -> str:  # noqa: D102
        return self.subject.name

    @property
    def kind(self) -> str:  # noqa: D102
        return stage_kind(self.step)

    @property
    def replica(self) -> Replica | None:
        """Replica of its step that the stage is; None if it is not a replica."""
        return self.step.traits.replica

    @property
    def is_in_time_order(self) -> bool:
        """Whether rows with writers leave in the order of event times, without late ones."""
        if isinstance(self.step, SourceStep):
            return self.step.has_single_partition
        return self.step.traits.orders_keys

    @property
    def combines(self) -> bool:
        """Whether partial results leave, without the writers of their rows."""
        return any(step.traits.combines for step in self.chain)

    @property
    def mixes_writers(self) -> bool:
        """Whether partial results are of several writers, and so in no order of event times."""
        step = self.step
        return self.combines and isinstance(step, SourceStep) and step.source.has_writers

    @property
    def last(self) -> Step:
        """Step that its rows leave."""
        return self.chain[-1] if self.chain else self.step


def expanded(
    step: Step,
    chain: tuple[Step, ...],
    *,
    number: int,
    rank: int,
    parts: Sequence[SourceStep] = (),
    feeders: Sequence[PlannedStage] = (),
) -> list[PlannedStage]:
    """Return the stages of a step: one, or replicas, perhaps after a shared gate.

    Args:
        step: the step with these stages.
        chain: stateless steps that run in its stages.
        number: number of the first stage in the plan.
        rank: rank of all stages of the step.
        parts: the step with a part of its partitions each; empty if one stage reads all.
        feeders: stages that feed a sink. Without an order, each replica among them has a writer.
    """
    if isinstance(step, SinkStep) and step.may_have_writers:
        named = [Subject(step.name, feeder.subject.part) for feeder in feeders if feeder.replica]
        if len(named) > 1:
            writers = zip(named, step.writers([subject.name for subject in named]), strict=True)
            return [
                PlannedStage(subject, number + index, rank, writer, chain, origin=step)
                for index, (subject, writer) in enumerate(writers)
            ]
    if parts:
        return [
            PlannedStage(
                Subject(step.name, index + 1), number + index, rank, part, chain, origin=step
            )
            for index, part in enumerate(parts)
        ]
    if not isinstance(step, GatedStep) or step.traits.sharing.replicas == 1:
        return [PlannedStage(Subject(step.name), number, rank, step, chain, origin=step)]
    replicas, share, _ = step.traits.sharing
    subjects = [Subject(step.name, index + 1) for index in range(replicas)]
    if step.traits.owns_keys:
        return [
            PlannedStage(
                subject,
                number + index,
                rank,
                step.part(subject.name, Replica(index, replicas, share, has_gate=True)),
                chain,
                origin=step,
            )
            for index, subject in enumerate(subjects)
        ]
    shared = Subject(step.name, GATE)
    gate_step = GateStep(
        name=shared.name,
        inputs=step.inputs,
        schema=step.schema,
        of=step,
        release=step.traits.release,
    )
    gate = PlannedStage(shared, number, rank, gate_step, (), origin=step)
    return [gate] + [
        PlannedStage(
            subject,
            number + index + 1,
            rank,
            step.part(subject.name, Replica(index, replicas, share)),
            chain,
            origin=step,
            gate=gate,
        )
        for index, subject in enumerate(subjects)
    ]


def check_names(stages: list[PlannedStage]) -> None:
    """Refuse two stages of one name.

    Raises:
        DuplicateName: two have one name.
    """
    names: set[str] = set()
    for planned in stages:
        if planned.name in names:
            replicas = planned.origin.traits.sharing.replicas
            raise DuplicateName(
                f"two stages would be named {planned.name!r}, a step and a part of one with "
                f"replicas={replicas}; rename one of the two steps"
            )
        names.add(planned.name)


def holds_nothing(stage: PlannedStage) -> bool:
    """Whether the stage's gate releases rows as they arrive."""
    return stage.step.traits.release == ON_ARRIVAL


def output_traits(
    planned_of: Mapping[str, list[PlannedStage]], heads: Mapping[str, str]
) -> dict[str, OutputTraits]:
    """Return {step that begins a stage: traits of the rows that leave it}.

    Args:
        planned_of: stages of each step as above, in topological order; replicas of one step have
            the same traits.
        heads: heads of stages as above.
    """
    traits: dict[str, OutputTraits] = {}
    for name, stages in planned_of.items():
        step = stages[0].origin
        came = [traits[heads[source]] for source in step.inputs]
        if isinstance(step, SourceStep):
            traits[name] = of_source(step.source)
        elif step.traits.has_gate:
            has_slack = step.traits.release != READY_ONLY
            traits[name] = after_gate(came, step.traits.summaries, has_slack=has_slack)
        else:
            is_side = step.traits.role is Role.SIDE_ROWS
            traits[name] = without_gate(came[0], is_disordered=is_side)
    return traits


def late_of(step: LateStep, wanted: frozenset[str]) -> LateOf:
    """Return the late rows on a channel into a step that needs the `wanted` columns."""
    ports = [
        None if each is None else {new: old for new, old in each.items() if new in wanted}
        for each in step.columns
    ]
    return LateOf(step.inputs[0], tuple(ports))

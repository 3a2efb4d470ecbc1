"""Stages in the making: which there will be of a step, and what its rows are like.

In what follows `drafts` is {step that begins a stage: the stages that its rows leave, several of
one with replicas}, and `heads` {step: the one that begins its stage}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from runtime.errors import DuplicateName
from runtime.model import ON_ARRIVAL, READY_ONLY
from runtime.plan.steps import (
    AggregateStep,
    GateStep,
    JoinStep,
    LateStep,
    MergeStep,
    Replica,
    SinkStep,
    SourceStep,
    Step,
)

StageKind = Literal["source", "merge", "gate", "join", "aggregate", "stateless", "sink"]
StagePart = Literal["whole", "gate", "replica"]
"""What of a step a stage is; one without replicas is one stage."""


@dataclass(frozen=True)
class Draft:
    """A stage without its channels."""

    name: str
    number: int
    step: Step
    chain: tuple[Step, ...]
    origin: Step
    """As the user wrote it."""
    gate: Draft | None = None
    """Of a replica: the stage that feeds it."""

    @property
    def kind(self) -> StageKind:
        """What it does."""
        kinds: dict[type[Step], StageKind] = {
            SourceStep: "source",
            MergeStep: "merge",
            GateStep: "gate",
            JoinStep: "join",
            AggregateStep: "aggregate",
            SinkStep: "sink",
        }
        return kinds.get(type(self.step), "stateless")

    @property
    def part(self) -> StagePart:
        """What of its step it is."""
        if self.gate is not None:
            return "replica"
        return "gate" if isinstance(self.step, GateStep) else "whole"

    @property
    def replica(self) -> Replica | None:
        """Which replica of its step it is; None: it is none."""
        return getattr(self.step, "replica", None)

    @property
    def last(self) -> Step:
        """The step that its rows leave."""
        return self.chain[-1] if self.chain else self.step


def expanded(step: Step, chain: tuple[Step, ...], *, number: int) -> list[Draft]:
    """Return the stages of a step: one; or, of one with replicas, their gate and them."""
    replicas = step.replicas if isinstance(step, JoinStep | AggregateStep) else 1
    if not isinstance(step, JoinStep | AggregateStep) or replicas == 1:
        return [Draft(step.name, number, step, chain, origin=step)]
    share = step.share if isinstance(step, JoinStep) else "keys"
    gate_step = GateStep(
        name=f"{step.name}.gate",
        inputs=step.inputs,
        schema=step.schema,
        keys=(step.left_on, step.right_on) if isinstance(step, JoinStep) else (step.keys,),
        replicas=replicas,
        share=share,
        release=step.release,
        window_ns=step.window_ns,
        keep=step.keep,
    )
    gate = Draft(gate_step.name, number, gate_step, (), origin=step)
    return [gate] + [
        Draft(
            f"{step.name}.{index + 1}",
            number + index + 1,
            replace(
                step,
                name=f"{step.name}.{index + 1}",
                release=READY_ONLY,
                replica=Replica(index, replicas, share),
            ),
            chain,
            origin=step,
            gate=gate,
        )
        for index in range(replicas)
    ]


def check_names(stages: list[Draft]) -> None:
    """Refuse two stages of one name.

    Raises:
        DuplicateName: there are two.
    """
    names: set[str] = set()
    for draft in stages:
        if draft.name in names:
            raise DuplicateName(
                f"two stages would be named {draft.name!r}, a step and a part of one with "
                f"replicas={getattr(draft.origin, 'replicas', 1)}; rename one of the two steps"
            )
        names.add(draft.name)


def holds_nothing(stage: Draft) -> bool:
    """Whether its gate lets rows go as they come."""
    return getattr(stage.step, "release", None) == ON_ARRIVAL


def has_writers(stage: Draft, drafts: Mapping[str, list[Draft]], heads: Mapping[str, str]) -> bool:
    """Whether rows that leave a stage carry writers of their own."""
    if isinstance(stage.step, SourceStep):
        return stage.step.source.writer is not None
    if stage.kind == "stateless":
        feeding = drafts[heads[stage.step.inputs[0]]]
        return len(feeding) > 1 or has_writers(feeding[0], drafts, heads)
    return False


def idle_ns(
    stage: Draft, drafts: Mapping[str, list[Draft]], heads: Mapping[str, str]
) -> int | None:
    """Return after how long by the clock a stage's silence is that of its sources; None: never.

    Behind a gate all of them need an idle. Its stage may be silent for the longest of its inputs,
    and for as long again as a source may keep the gate waiting; an aggregate promises no more
    before its next window ends. So none is idle while its sources speak, event time going on.
    """
    found = _silence(stage, drafts, heads)
    return None if found is None else found.idle_ns


@dataclass(frozen=True)
class _Silence:
    """How long a stage may be silent, the longest of its sources', and their slowest speed."""

    idle_ns: int
    source_ns: int
    speed: float


def _silence(
    stage: Draft, drafts: Mapping[str, list[Draft]], heads: Mapping[str, str]
) -> _Silence | None:
    if isinstance(stage.step, SourceStep):
        spec = stage.step.source
        if spec.idle_ns is None:
            return None
        speed = 1 if spec.speed is None else min(spec.speed, 1)  # a slow replay is no silence
        return _Silence(round(spec.idle_ns / speed), round(spec.idle_ns / speed), speed)
    # Replicas of one step have the same inputs, so one speaks for all.
    inputs = [_silence(drafts[heads[name]][0], drafts, heads) for name in stage.origin.inputs]
    known = [one for one in inputs if one is not None]
    if len(known) < len(inputs):
        return None
    longest_ns = max([one.idle_ns for one in known])
    source_ns = max([one.source_ns for one in known])
    speed = min([one.speed for one in known])
    if stage.kind == "stateless":
        return _Silence(longest_ns, source_ns, speed)
    step = stage.origin
    window_ns = round(step.window.slide_ns / speed) if isinstance(step, AggregateStep) else 0
    return _Silence(longest_ns + source_ns + window_ns, source_ns, speed)


def is_disordered(
    stage: Draft, drafts: Mapping[str, list[Draft]], heads: Mapping[str, str]
) -> bool:
    """Whether rows may leave a stage in another order than that of their event times."""
    if isinstance(stage.step, SourceStep):
        spec = stage.step.source
        return spec.promise is not None or spec.out_of_order == "late"
    if isinstance(stage.step, LateStep):
        return True
    if stage.kind == "stateless":
        return is_disordered(drafts[heads[stage.step.inputs[0]]][0], drafts, heads)
    return may_send_late(stage, drafts, heads)


def may_send_late(
    stage: Draft, drafts: Mapping[str, list[Draft]], heads: Mapping[str, str]
) -> bool:
    """Whether rows may leave a stage behind what it has promised; a replica: as its gate."""
    if isinstance(stage.step, SourceStep):
        return stage.step.source.idle_ns is not None
    if getattr(stage.origin, "release", READY_ONLY) != READY_ONLY:
        return True
    # Replicas of one step have the same inputs, so one speaks for all.
    inputs = [drafts[heads[name]][0] for name in stage.origin.inputs]
    return any(may_send_late(upstream, drafts, heads) for upstream in inputs)

"""From steps to stages: what runs together, what travels between, and where it all goes.

A stage is what a slot schedules: a source, an operator behind its gate, or a sink, each with the
stateless steps that follow it alone. A channel joins two stages and carries only the columns that
are needed behind it.

```
steps    buses ─ filter ─┐                    stages   [buses ▸ filter] ──┐
                         join ─ select ─ out           [loops] ───────────[join ▸ select]── [out]
         loops ──────────┘
```

The replicas of a step are stages of their own, behind a stage that is their gate:

```
[buses ▸ filter] ─┐            ┌─ [join.1 ▸ select] ─┐
[loops] ──────────[join.gate]──┴─ [join.2 ▸ select] ─┴─ [out]
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from runtime.errors import DuplicateName
from runtime.flow.steps import (
    ON_ARRIVAL_NS,
    AggregateStep,
    AssignStep,
    FilterStep,
    GateStep,
    JoinStep,
    MapBatchesStep,
    MapRowsStep,
    MergeStep,
    Replica,
    SelectStep,
    SinkStep,
    SourceStep,
    Step,
)

if TYPE_CHECKING:
    from runtime.flow.dataflow import Dataflow

StageKind = Literal["source", "merge", "gate", "join", "aggregate", "stateless", "sink"]
STATELESS = (FilterStep, AssignStep, SelectStep, MapBatchesStep, MapRowsStep)
GATED: frozenset[StageKind] = frozenset({"merge", "gate", "join", "aggregate"})
"""Kinds that have a gate, or (a replica) are told what their gate has read."""

IDLE_PROMISE_NS = 50_000_000
"""How long a channel to a gate that holds nothing may be silent before it carries a promise."""
RANK_SHIFT = 48
"""A writer's rank is its stage's number shifted by this; the low bits tell the writers of one
source apart (SourceSpec.writer). So ties break alike wherever the stages run."""


@dataclass(frozen=True)
class Channel:
    """One edge of the plan.

    Attributes:
        name: `source→target`, with the port where a stage feeds another twice.
        port: which input of the target.
        rank: the tie order of its rows among all writers of the target's gate.
        schema: the columns that travel.
        has_writers: rows carry their own writer.
        is_mixed: rows may come in another order than that of their event times.
        needs_promises: promises without rows are worth sending (the target has a gate).
        promise_gap_ns: but only this long after the last message. A gate that holds nothing
            waits for no promise; what is behind it only needs to hear of time now and then.
    """

    name: str
    source: str
    target: str
    port: int
    rank: int
    schema: pa.Schema
    has_writers: bool
    is_mixed: bool
    needs_promises: bool
    promise_gap_ns: int = 0


@dataclass(frozen=True)
class Stage:
    """One stage: its main step, the stateless steps fused behind it, its channels."""

    name: str
    kind: StageKind
    number: int
    step: Step
    chain: tuple[Step, ...]
    inputs: tuple[Channel, ...]
    outputs: tuple[Channel, ...]
    needed: frozenset[str]
    """Of a source: the columns to read."""

    @property
    def slack_ns(self) -> int | None:
        """The slack of its gate; None: ready-only, or no gate (a replica's is another stage)."""
        return getattr(self.step, "slack_ns", None)

    @property
    def replica(self) -> Replica | None:
        """Which replica of its step it is; None: its step is one stage."""
        return getattr(self.step, "replica", None)


@dataclass(frozen=True)
class Plan:
    """Stages in topological order, the channels between them, and the slot of each stage."""

    flow: str
    stages: tuple[Stage, ...]
    channels: tuple[Channel, ...]
    slots: Mapping[str, str]  # {stage: slot}

    def stages_of(self, slot: str) -> tuple[Stage, ...]:
        """Return the stages that run in a slot."""
        return tuple(stage for stage in self.stages if self.slots[stage.name] == slot)

    @property
    def slot_names(self) -> tuple[str, ...]:
        """The slots in use, in order of first use."""
        return tuple(dict.fromkeys(self.slots[stage.name] for stage in self.stages))


def plan_stages(flow: Dataflow) -> tuple[Stage, ...]:
    """Return the stages of a checked flow, in topological order, not placed yet."""
    flow.check()
    steps = dict(flow.steps)
    needed = flow.needed_columns()
    consumers: dict[str, list[Step]] = {name: [] for name in steps}
    for step in steps.values():
        for name in dict.fromkeys(step.inputs):
            consumers[name].append(step)
    heads: dict[str, str] = {}  # {step: the stage it belongs to}
    chains: dict[str, list[Step]] = {}
    for step in steps.values():
        if isinstance(step, STATELESS) and len(consumers[step.inputs[0]]) == 1:
            heads[step.name] = heads[step.inputs[0]]
            chains[heads[step.name]].append(step)
        else:
            heads[step.name] = step.name
            chains[step.name] = []
    drafts: dict[str, list[_Draft]] = {}  # {step: the stages that its rows leave}
    stages: list[_Draft] = []
    for name, chain in chains.items():
        parts = _expanded(steps[name], tuple(chain), number=len(stages) + 1)
        drafts[name] = [part for part in parts if part.kind != "gate"]
        stages += parts
    _check_names(stages)
    channels = [
        channel
        for draft in stages
        for channel in (
            _channels_into(draft, drafts, heads, needed)
            if draft.gate is None
            else _channels_dealt(draft.gate, draft, steps, needed)
        )
    ]
    return tuple(draft.finished(channels, needed) for draft in stages)


def _expanded(step: Step, chain: tuple[Step, ...], *, number: int) -> list[_Draft]:
    """Return the stages of a step: one; or, of one with replicas, their gate and them."""
    replicas = step.replicas if isinstance(step, JoinStep | AggregateStep) else 1
    if not isinstance(step, JoinStep | AggregateStep) or replicas == 1:
        return [_Draft(step.name, number, step, chain, origin=step)]
    share = step.share if isinstance(step, JoinStep) else "keys"
    gate_step = GateStep(
        name=f"{step.name}.gate",
        inputs=step.inputs,
        schema=step.schema,
        keys=(step.left_on, step.right_on) if isinstance(step, JoinStep) else (step.keys,),
        replicas=replicas,
        share=share,
        slack_ns=step.slack_ns,
    )
    gate = _Draft(gate_step.name, number, gate_step, (), origin=step)
    return [gate] + [
        _Draft(
            f"{step.name}.{index + 1}",
            number + index + 1,
            replace(
                step,
                name=f"{step.name}.{index + 1}",
                slack_ns=None,
                replica=Replica(index, replicas, share),
            ),
            chain,
            origin=step,
            gate=gate,
        )
        for index in range(replicas)
    ]


def _check_names(stages: list[_Draft]) -> None:
    names: set[str] = set()
    for draft in stages:
        if draft.name in names:
            raise DuplicateName(
                f"two stages would be named {draft.name!r}, a step and a part of one with "
                f"replicas={getattr(draft.origin, 'replicas', 1)}; rename one of the two steps"
            )
        names.add(draft.name)


@dataclass(frozen=True)
class _Draft:
    name: str
    number: int
    step: Step
    chain: tuple[Step, ...]
    origin: Step
    """As the user wrote it."""
    gate: _Draft | None = None
    """Of a replica: the stage that feeds it."""

    @property
    def kind(self) -> StageKind:
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
    def last(self) -> Step:
        return self.chain[-1] if self.chain else self.step

    def finished(self, channels: list[Channel], needed: Mapping[str, frozenset[str]]) -> Stage:
        step = self.step
        if isinstance(step, JoinStep | AggregateStep):
            step = _pruned(step, needed[self.origin.name])
        return Stage(
            name=self.name,
            kind=self.kind,
            number=self.number,
            step=step,
            chain=self.chain,
            inputs=tuple(channel for channel in channels if channel.target == self.name),
            outputs=tuple(channel for channel in channels if channel.source == self.name),
            needed=needed[self.name] if isinstance(step, SourceStep) else frozenset(),
        )


def collect_sinks(plan: Plan) -> list[str]:
    """Return the names of a plan's collect sinks."""
    return [
        stage.name
        for stage in plan.stages
        if isinstance(stage.step, SinkStep) and stage.step.sink.kind == "collect"
    ]


def _pruned(step: JoinStep | AggregateStep, needed: frozenset[str]) -> Step:
    if isinstance(step, AggregateStep):
        return step
    wanted = needed | (step.where.columns() if step.where is not None else frozenset())
    return replace(step, schema=pa.schema([f for f in step.schema if f.name in wanted]))


def _channels_into(
    target: _Draft,
    drafts: Mapping[str, list[_Draft]],
    heads: Mapping[str, str],
    needed: Mapping[str, frozenset[str]],
) -> list[Channel]:
    channels: list[Channel] = []
    for position, name in enumerate(target.step.inputs):
        port = position if isinstance(target.origin, JoinStep) else 0
        twice = target.step.inputs.count(name) > 1
        for source in drafts[heads[name]]:
            writers = _has_writers(source, drafts, heads)
            channels.append(
                Channel(
                    name=f"{source.name}→{target.name}" + (f":{position + 1}" if twice else ""),
                    source=source.name,
                    target=target.name,
                    port=port,
                    # A stage that feeds one port twice is two writers there.
                    rank=(source.number << RANK_SHIFT) + (position if twice and port == 0 else 0),
                    schema=_travelling(source.last, needed[name]),
                    has_writers=writers and target.kind != "sink",
                    is_mixed=writers or _is_disordered(source, drafts, heads),
                    needs_promises=target.kind != "sink",
                    promise_gap_ns=IDLE_PROMISE_NS if _holds_nothing(target) else 0,
                )
            )
    return channels


def _channels_dealt(
    gate: _Draft,
    replica: _Draft,
    steps: Mapping[str, Step],
    needed: Mapping[str, frozenset[str]],
) -> list[Channel]:
    """Return the channels from a gate to one of its replicas: one for each port."""
    return [
        Channel(
            name=f"{gate.name}→{replica.name}:{port + 1}",
            source=gate.name,
            target=replica.name,
            port=port,
            rank=(gate.number << RANK_SHIFT) + port,
            schema=_travelling(steps[name], needed[name]),
            has_writers=False,
            is_mixed=False,
            needs_promises=True,
        )
        for port, name in enumerate(gate.step.inputs)
    ]


def _travelling(step: Step, needed: frozenset[str]) -> pa.Schema:
    return pa.schema([field for field in step.schema if field.name in needed])


def _holds_nothing(stage: _Draft) -> bool:
    return getattr(stage.step, "slack_ns", None) == ON_ARRIVAL_NS


def _has_writers(
    stage: _Draft, drafts: Mapping[str, list[_Draft]], heads: Mapping[str, str]
) -> bool:
    if isinstance(stage.step, SourceStep):
        return stage.step.source.writer is not None
    if stage.kind == "stateless":
        feeding = drafts[heads[stage.step.inputs[0]]]
        return len(feeding) > 1 or _has_writers(feeding[0], drafts, heads)
    return False


def _is_disordered(
    stage: _Draft, drafts: Mapping[str, list[_Draft]], heads: Mapping[str, str]
) -> bool:
    """Whether rows may leave a stage in another order than that of their event times."""
    if isinstance(stage.step, SourceStep):
        spec = stage.step.source
        return spec.promise is not None or spec.out_of_order == "late"
    if stage.kind == "stateless":
        return _is_disordered(drafts[heads[stage.step.inputs[0]]][0], drafts, heads)
    return getattr(stage.origin, "slack_ns", None) is not None

"""From steps to stages: what runs together, what travels between, and where it all goes.

A stage is what a slot schedules: a source, an operator behind its gate, or a sink, each with the
stateless steps that follow it alone. A channel joins two stages and carries only the columns that
are needed behind it.

```
steps    buses ─ filter ─┐                    stages   [buses ▸ filter] ──┐
                         join ─ select ─ out           [loops] ───────────[join ▸ select]── [out]
         loops ──────────┘
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from runtime.flow.steps import (
    ON_ARRIVAL_NS,
    TUNED_NS,
    AggregateStep,
    AssignStep,
    FilterStep,
    JoinStep,
    MapBatchesStep,
    MapRowsStep,
    MergeStep,
    SelectStep,
    SinkStep,
    SourceStep,
    Step,
)

if TYPE_CHECKING:
    from runtime.flow.dataflow import Dataflow

StageKind = Literal["source", "merge", "join", "aggregate", "stateless", "sink"]
STATELESS = (FilterStep, AssignStep, SelectStep, MapBatchesStep, MapRowsStep)
GATED: frozenset[StageKind] = frozenset({"merge", "join", "aggregate"})

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
        idle_ns: of wall-clock time in silence, after which the target's gate goes on without it;
            None: it never does.
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
    idle_ns: int | None = None


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
        """The slack of its gate at the start; None: ready-only, or no gate."""
        return None if self.is_tuned else getattr(self.step, "slack_ns", None)

    @property
    def is_tuned(self) -> bool:
        """Whether the slack of its gate follows from the deadline."""
        return getattr(self.step, "slack_ns", None) == TUNED_NS

    @property
    def is_ready_only(self) -> bool:
        """Whether its gate releases only what is ready, now and later."""
        return self.kind in GATED and getattr(self.step, "slack_ns", None) is None

    @property
    def window_ns(self) -> int:
        """SW of [ssg] §2.1: how long, in event time, a row stays in the operator's state."""
        if isinstance(self.step, JoinStep):
            return self.step.within_ns
        return self.step.window.size_ns if isinstance(self.step, AggregateStep) else 0


@dataclass(frozen=True)
class Plan:
    """Stages in topological order, the channels between them, and the slot of each stage."""

    flow: str
    stages: tuple[Stage, ...]
    channels: tuple[Channel, ...]
    slots: Mapping[str, str]  # {stage: slot}
    deadline_ns: int | None = None
    """The latency to keep, [ssg] Eq. 3; None: none."""

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
    stages = [
        _Draft(name=name, number=number, step=steps[name], chain=tuple(chain))
        for number, (name, chain) in enumerate(chains.items(), start=1)
    ]
    drafts = {draft.name: draft for draft in stages}
    channels = [
        channel for draft in stages for channel in _channels_into(draft, drafts, heads, needed)
    ]
    return tuple(draft.finished(channels, needed) for draft in stages)


@dataclass(frozen=True)
class _Draft:
    name: str
    number: int
    step: Step
    chain: tuple[Step, ...]

    @property
    def kind(self) -> StageKind:
        kinds: dict[type[Step], StageKind] = {
            SourceStep: "source",
            MergeStep: "merge",
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
            step = _pruned(step, needed[step.name])
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
    drafts: Mapping[str, _Draft],
    heads: Mapping[str, str],
    needed: Mapping[str, frozenset[str]],
) -> list[Channel]:
    channels: list[Channel] = []
    for position, name in enumerate(target.step.inputs):
        source = drafts[heads[name]]
        port = position if target.kind == "join" else 0
        twice = target.step.inputs.count(name) > 1
        writers = _has_writers(source, drafts, heads)
        channels.append(
            Channel(
                name=f"{source.name}→{target.name}" + (f":{position + 1}" if twice else ""),
                source=source.name,
                target=target.name,
                port=port,
                # A stage that feeds one port twice is two writers there.
                rank=(source.number << RANK_SHIFT) + (position if twice and port == 0 else 0),
                schema=pa.schema([f for f in source.last.schema if f.name in needed[name]]),
                has_writers=writers and target.kind != "sink",
                is_mixed=writers or _is_disordered(source, drafts, heads),
                needs_promises=target.kind != "sink",
                promise_gap_ns=IDLE_PROMISE_NS if _holds_nothing(target) else 0,
                idle_ns=_idle_ns(source, drafts, heads) if target.kind in GATED else None,
            )
        )
    return channels


def _holds_nothing(stage: _Draft) -> bool:
    return getattr(stage.step, "slack_ns", None) == ON_ARRIVAL_NS


def _has_writers(stage: _Draft, drafts: Mapping[str, _Draft], heads: Mapping[str, str]) -> bool:
    if isinstance(stage.step, SourceStep):
        return stage.step.source.writer is not None
    if stage.kind == "stateless":
        return _has_writers(drafts[heads[stage.step.inputs[0]]], drafts, heads)
    return False


def _idle_ns(stage: _Draft, drafts: Mapping[str, _Draft], heads: Mapping[str, str]) -> int | None:
    """Return how long the source whose rows these are may be silent; None behind a gate."""
    if isinstance(stage.step, SourceStep):
        spec = stage.step.source
        if spec.idle_ns is None or spec.speed is None:
            return spec.idle_ns
        return round(spec.idle_ns / min(spec.speed, 1))  # a slow replay is no silence
    if stage.kind == "stateless":
        return _idle_ns(drafts[heads[stage.step.inputs[0]]], drafts, heads)
    return None


def _is_disordered(stage: _Draft, drafts: Mapping[str, _Draft], heads: Mapping[str, str]) -> bool:
    """Whether rows may leave a stage in another order than that of their event times."""
    if isinstance(stage.step, SourceStep):
        spec = stage.step.source
        return spec.promise is not None or spec.out_of_order == "late"
    if stage.kind == "stateless":
        return _is_disordered(drafts[heads[stage.step.inputs[0]]], drafts, heads)
    return _may_send_late(stage, drafts, heads)


def _may_send_late(stage: _Draft, drafts: Mapping[str, _Draft], heads: Mapping[str, str]) -> bool:
    """Whether rows may leave a stage behind what it has promised."""
    if isinstance(stage.step, SourceStep):
        return stage.step.source.idle_ns is not None
    if getattr(stage.step, "slack_ns", None) is not None:
        return True
    inputs = [drafts[heads[name]] for name in stage.step.inputs]
    return any(_may_send_late(upstream, drafts, heads) for upstream in inputs)

"""Plans: the stages of a flow's steps, their channels, and their slots.

A stage is what a slot schedules: a source, an operator after its gate, or a sink, each with the
stateless steps that follow it alone. A channel joins two stages and carries only the columns that
later steps need.

```
steps    buses ─ filter ─┐                    stages   [buses ▸ filter] ──┐
                         join ─ select ─ out           [loops] ───────────[join ▸ select]── [out]
         loops ──────────┘
```

The replicas of a step are separate stages. Each has a gate, and gets the rows of its keys from all
feeders; where one gate decides for all replicas, it is a stage before them (`orders_keys`):

```
[buses ▸ filter] ─┬─▶ [join.1 ▸ select] ─┐     [buses ▸ filter] ─┐           ┌─ [join.1] ─┐
                  ├─▶ [join.2 ▸ select] ─┴─▶ [out]               [join.gate]─┴─ [join.2] ─┴─▶ [out]
[loops] ──────────┘                            [loops] ──────────┘
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

import pyarrow as pa

from slackwater.runtime.config import Limits, Tuning
from slackwater.runtime.model import (
    BY_DEADLINE,
    NS_PER_SECOND,
    READY_ONLY,
    Int64Array,
    ReleaseRule,
    duration_ns,
)
from slackwater.runtime.model.hashes import even_groups, groups_owned
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.plan.after_failure import Guarantee
from slackwater.runtime.plan.arrivals import ArrivalSettings, ArrivalWays, opened
from slackwater.runtime.plan.beginning import Beginning
from slackwater.runtime.plan.expected import ExpectedLatency
from slackwater.runtime.plan.flow_fingerprints import FlowFingerprint
from slackwater.runtime.plan.graph import (
    StepGraph,
    columns_read,
    needed_columns,
    times_ahead,
)
from slackwater.runtime.plan.partial_results import with_partial_results
from slackwater.runtime.plan.planned_stages import (
    LateOf,
    PlannedStage,
    check_names,
    expanded,
    holds_nothing,
    late_of,
    output_traits,
)
from slackwater.runtime.plan.promises import OutputTraits
from slackwater.runtime.plan.row_fields import WRITERS, FieldWays
from slackwater.runtime.plan.slots import SlotPlace
from slackwater.runtime.plan.step import EachRowStep, GatedStep, Step
from slackwater.runtime.plan.steps import (
    GateStep,
    LateStep,
    SideStep,
    SinkStep,
    SourceStep,
    consumers_of,
    leaves_by_key,
    sinks_among,
    sources_among,
)
from slackwater.runtime.plan.traits import Replica, Role
from slackwater.runtime.plan.verdict import Verdict

IDLE_PROMISE_NS = 50_000_000
"""Longest silence of a channel to a gate that holds nothing, before it carries a promise."""
RANK_SHIFT = 48
"""A writer's rank is its stage's number shifted by this; the low bits tell the writers of one
source apart (SourceSpec.writer). So ties break alike wherever the stages run."""

_PART_SHIFT = 16
"""Replicas of a step have its rank; the low bits tell them apart, shifted by this."""

PlacedBy = Literal["rule", "feed", "placement", "search"]
"""Reason for a stage's slot: the simple rule, its feeder's slot, the user's placement, or the
search for the least latency."""


class KeyPart(NamedTuple):
    """Part of a stream for one replica: the rows of its keys.

    Attributes:
        columns: the key columns.
        replica: number of the replica, from 0.
        groups: number of key groups of each replica of the step, 128 in all.
    """

    columns: tuple[str, ...]
    replica: int
    groups: tuple[int, ...]

    @property
    def own_groups(self) -> Int64Array:
        """Groups of keys that the replica owns, ascending."""
        return groups_owned(self.replica, self.groups)


class RowBalance(NamedTuple):
    """Balance of the rows of a step's replicas: their key groups follow from a sample.

    Attributes:
        rows: rows of the sample.
        shares: number of key groups of each replica if each group had as many rows, 128 in all.
    """

    rows: int
    shares: tuple[int, ...]


class KeyOrder(NamedTuple):
    """Order of a step's results at one event time: by the hash of their key.

    Attributes:
        columns: the key columns of the results; None if the operator itself gives them hashes.
        rank: rank of the step, above the hash in the writer of a result.
    """

    columns: tuple[str, ...] | None
    rank: int


@dataclass(frozen=True)
class Channel:
    """Edge of a plan: what one stage sends to another.

    Attributes:
        name: `source→target`, with the port where a stage feeds another twice.
        feeder: the step, or the part of it, whose stage sends.
        target: name of the stage that receives.
        port: the input of the target.
        rank: the tie order of its rows among all writers of the target's gate.
        schema: the columns that travel.
        row_fields: fields of rows (`ROW_FIELDS`) that travel: those that rows have, and that a step
            downstream reads. With arrivals, messages say how far these have gone on, too.
        shares_writers: rows' writers are from further upstream, so other channels may carry them,
            too.
        is_mixed: rows may have another order than that of their event times, or rows of one time
            another one than that of their writers, if no other channel carries these.
        may_be_late: rows may be older than the channel's promise: from a gate with a slack, or from
            a writer that was idle.
        needs_promises: promises without rows are worth sending (the target has a gate).
        promise_gap_ns: the least time between the last message and such a promise. A gate that
            holds nothing waits for no promise; stages after it need one now and then.
        idle_ns: silence, by the clock, after which the target's gate no longer waits for it;
            None if the gate always waits.
        by_clock: whether it comes of a live source, so that time goes on by the clock once all
            channels of the gate are silent.
        late: settings of the late rows that it carries; None if it carries results.
        diverted: the step whose diverted rows it carries; None if it carries others.
        replica: the index of the replica that a gate's channel feeds; None if it is another
            channel.
        owned: the part of the rows that travels; None if all rows do.
        ahead_ns: event time by which its rows come before others of the same source, which a
            step before the gate holds; END_NS if it holds these to the end.
    """

    name: str
    feeder: Subject
    target: str
    port: int
    rank: int
    schema: pa.Schema
    row_fields: frozenset[str]
    is_mixed: bool
    may_be_late: bool
    needs_promises: bool
    promise_gap_ns: int = 0
    idle_ns: int | None = None
    by_clock: bool = False
    late: LateOf | None = None
    diverted: str | None = None
    replica: int | None = None
    shares_writers: bool = False
    owned: KeyPart | None = None
    ahead_ns: int = 0

    def name_between(self, source: str, target: str) -> str:
        """Return its name if its stages had these names."""
        port = self.name[len(f"{self.source}→{self.target}") :]
        return f"{source}→{target}{port}"

    @cached_property
    def source(self) -> str:
        """Name of the stage that sends."""
        return self.feeder.name


@dataclass(frozen=True)
class Stage:
    """Stage of a plan: its main step, the stateless steps fused after it, its channels."""

    subject: Subject
    """Its step as the user named it, or the part of it that the stage is."""
    kind: str
    """source, stateless, gate, sink; or the kind of the stage's operator."""
    number: int
    step: Step
    chain: tuple[Step, ...]
    inputs: tuple[Channel, ...]
    outputs: tuple[Channel, ...]
    needed: frozenset[str]
    """Columns that a source reads."""
    rank: int = 0
    """Rank of its rows among those of other steps: see `PlannedStage`."""
    arrivals: ArrivalSettings | None = None
    """Arrivals that a source tells; None if no step uses them."""
    is_uneven: bool = False
    """Whether arrivals reach it through gates that wait for event time: see `ArrivalWays`."""
    beginning: Beginning | None = None
    """Beginning of a source's replay; None if it is its own first arrival, or no replay."""
    key_order: KeyOrder | None = None
    """Order of its results by their keys; None if they leave as its gate released rows."""
    is_backlog: bool = False
    """Whether all sources of its flow read existing data as fast as they can."""

    @cached_property
    def name(self) -> str:
        """Name of the stage: no other stage of the plan has it."""
        return self.subject.name

    @property
    def whole(self) -> str:
        """Name of its step if the stage is an equal part; else its own name.

        Equal parts are stages of a source, and replicas with a gate each.
        """
        is_part = isinstance(self.subject.part, int) and not self.shares_gate
        return self.subject.step if is_part else self.name

    @property
    def rule(self) -> ReleaseRule:
        """Rule of its gate at the start; ready-only if it has no gate.

        A replica's gate is another stage.
        """
        release = self.step.traits.release
        return release if isinstance(release, ReleaseRule) else READY_ONLY

    @property
    def is_tuned(self) -> bool:
        """Whether the rule of its gate follows from the deadline."""
        return self.step.traits.release is BY_DEADLINE

    @property
    def is_gated(self) -> bool:
        """Whether the stage has a gate, or is a replica after one."""
        return self.step.traits.has_gate

    @property
    def shares_gate(self) -> bool:
        """Whether the stage is a replica whose gate is another stage."""
        replica = self.replica
        return replica is not None and not replica.has_gate

    @property
    def is_ready_only(self) -> bool:
        """Whether its gate releases only what is ready, now and later."""
        return self.is_gated and self.step.traits.release == READY_ONLY

    @property
    def window_ns(self) -> int:
        """Event time for which the operator keeps a row: SW of [ssg] §2.1."""
        return self.step.traits.reach_ns if self.is_gated else 0

    @property
    def sheds(self) -> bool:
        """Whether the stage drops events under overload."""
        return self.step.traits.shed is not None

    @property
    def readers(self) -> int:
        """Number of replicas after its gate, |PThreads| of [ssg] Eq. 6; 0 without its own."""
        if self.shares_gate:
            return 0
        return self.step.traits.sharing.replicas if isinstance(self.step, GateStep) else 1

    @property
    def replica(self) -> Replica | None:
        """Replica of its step that the stage is; None if its step is one stage."""
        return self.step.traits.replica


@dataclass(frozen=True)
class Plan:
    """Stages in topological order, the channels between them, the slot of each stage; settings."""

    flow: str
    stages: tuple[Stage, ...]
    channels: tuple[Channel, ...]
    slots: Mapping[str, str]  # {stage: slot's name}
    places: Mapping[str, SlotPlace]  # {slot's name: slot}, of those in use, or that were
    deadline_ns: int | None = None
    """Latency to keep, [ssg] Eq. 3; None if none exists."""
    fingerprints: Mapping[str, FlowFingerprint] = field(default_factory=dict)
    """{sink that writes files: fingerprint of its flow}."""
    guarantees: tuple[Guarantee, ...] = ()
    """Guarantees of sources and sinks after a failure, in a job with checkpoints."""
    has_checkpoints: bool = False
    """Whether its job takes checkpoints, from which it goes on after a failure."""
    spools_to: str | None = None
    """Folder for the rows of sources that are read once; None if they are not spooled."""
    placed_by: Mapping[str, PlacedBy] = field(default_factory=dict)  # {stage: why it is there}
    offered: int = 0
    """Number of slots that the simple rule could use."""
    balances: Mapping[str, RowBalance] = field(default_factory=dict)
    """{step: balance of its replicas' rows}, where a sample of keys decided on key groups."""
    limits: Limits = field(default_factory=Limits)
    """Bounds of memory and slices."""
    tuning: Tuning | None = None
    """Settings of the tuner; None if no slack is tuned."""
    expected: ExpectedLatency | None = None
    """Prediction of the plan; None if no rates are known."""
    verdict: Verdict = field(default_factory=Verdict)
    """Whether the plan may run, and notes for its user."""

    @property
    def interval_ns(self) -> int:
        """Length of samples; a second if nothing is tuned.

        Raises:
            SettingError: the interval of `tuning` is not a length of time.
        """
        if self.tuning is None:
            return NS_PER_SECOND
        return duration_ns(self.tuning.interval, what="interval", positive=True)

    @property
    def held_sinks(self) -> frozenset[str]:
        """Sinks whose rows wait for the checkpoint that contains them; empty without checkpoints.

        Those of flows whose rows may differ after a failure.
        """
        held = [known.step for known in self.guarantees if known.is_held]
        return frozenset(held if self.has_checkpoints else ())

    @property
    def is_sampled(self) -> bool:
        """Whether stages take samples: a decider or the report reads them."""
        sheds = any(stage.sheds for stage in self.stages)
        return sheds or self.tuning is not None or self.expected is not None

    @property
    def tuned(self) -> tuple[str, ...]:
        """Stages whose slack follows from the deadline, in topological order."""
        return tuple(stage.name for stage in self.stages if stage.is_tuned)

    @property
    def beginnings(self) -> dict[str, Beginning]:
        """Return {replayed source: beginning of its replay}, of those that are known."""
        return {stage.name: stage.beginning for stage in self.stages if stage.beginning is not None}

    @property
    def key_groups(self) -> dict[str, int]:
        """Return {replica that gets rows by their keys: number of key groups that it owns}."""
        own: dict[str, int] = {}
        for stage in self.stages:
            replica = stage.replica
            if replica is not None and replica.share == "keys":
                owned = next((c.owned for c in stage.inputs if c.owned is not None), None)
                even = even_groups(replica.of)[replica.index]  # a shared gate deals evenly
                own[stage.name] = even if owned is None else owned.groups[owned.replica]
        return own

    @property
    def key_shares(self) -> dict[str, int]:
        """Return {replica: share of its step's rows that it is to get, in 128th}."""
        shares = self.key_groups
        for stage in self.stages:
            balance = self.balances.get(stage.whole)
            if balance is not None and stage.replica is not None:
                shares[stage.name] = balance.shares[stage.replica.index]
        return shares

    def stages_of(self, slot: str) -> tuple[Stage, ...]:
        """Return the stages that run in a slot."""
        return tuple(stage for stage in self.stages if self.slots[stage.name] == slot)

    @property
    def sources(self) -> list[SourceStep]:
        """Sources, in the order of the stages."""
        return sources_among(stage.step for stage in self.stages)

    @property
    def sinks(self) -> list[SinkStep]:
        """Sinks, in the order of the stages."""
        return sinks_among(stage.step for stage in self.stages)

    @property
    def slot_names(self) -> tuple[str, ...]:
        """Slots in use, in order of first use."""
        return tuple(dict.fromkeys(self.slots[stage.name] for stage in self.stages))

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes in use, in order of first use."""
        return tuple(dict.fromkeys(self.places[slot].node for slot in self.slot_names))


def plan_stages(
    graph: StepGraph,
    *,
    fuse: bool = True,
    source_parts: Mapping[str, Sequence[SourceStep]] | None = None,
) -> tuple[Stage, ...]:
    """Return the stages of a flow's steps, in topological order, not placed yet.

    Args:
        graph: graph of the steps.
        fuse: whether a stateless step runs in the stage of the step that feeds it alone.
        source_parts: {source: the source with a part of its partitions, for each of its stages}.

    Raises:
        FlowError: the steps cannot run; see `StepGraph.check`.
        DuplicateName: two stages would have one name.
    """
    graph.check()
    steps = _with_ordered_sinks(opened(graph.steps))
    if fuse:
        steps = with_partial_results(steps)
    ways = ArrivalWays.of(steps)
    needed = needed_columns(steps)
    consumers = consumers_of(steps)
    heads: dict[str, str] = {}  # {step: its stage}
    chains: dict[str, list[Step]] = {}
    fused: dict[str, str] = {}  # {step: the head of its chain, if it were fused}
    for step in steps.values():
        joins = isinstance(step, EachRowStep) and len(consumers[step.inputs[0]]) == 1
        fused[step.name] = fused[step.inputs[0]] if joins else step.name
        heads[step.name] = fused[step.name] if fuse else step.name
        if heads[step.name] == step.name:
            chains[step.name] = []
        else:
            chains[heads[step.name]].append(step)
    planned_of: dict[str, list[PlannedStage]] = {}  # {step: the stages that its rows leave}
    stages: list[PlannedStage] = []
    ranks: dict[str, int] = {}  # {head of a chain, if it were fused: its rank}
    next_rank = 1
    for name, chain in chains.items():
        is_head = fused[name] == name
        rank = ranks.setdefault(fused[name], next_rank)
        parts = expanded(
            steps[name],
            tuple(chain),
            number=len(stages) + 1,
            rank=rank,
            parts=() if name in ways.sources else (source_parts or {}).get(name, ()),
            feeders=planned_of[heads[steps[name].inputs[0]]] if steps[name].inputs else (),
        )
        next_rank += is_head
        planned_of[name] = [part for part in parts if part.step.traits.role is not Role.SHARED_GATE]
        stages += parts
    check_names(stages)
    expected = output_traits(planned_of, heads)
    fields, ahead = FieldWays.of(steps, planned_of, heads, closing=ways.takers), times_ahead(steps)
    channels = [
        channel
        for planned in stages
        for channel in (
            _channels_into(planned, planned_of, heads, expected, steps, needed, fields, ahead)
            if planned.gate is None
            else _channels_dealt(
                planned,
                steps,
                needed,
                fields,
                may_be_late=expected[planned.origin.name].may_be_late,
            )
        )
    ]
    is_backlog = all(step.source.is_backlog for step in sources_among(steps.values()))
    finished = [_finished(planned, channels, needed, ways) for planned in stages]
    return tuple(replace(stage, is_backlog=is_backlog) for stage in finished)


def _finished(
    planned: PlannedStage,
    channels: list[Channel],
    needed: Mapping[str, frozenset[str]],
    ways: ArrivalWays,
) -> Stage:
    step = planned.step
    order: KeyOrder | None = None
    if isinstance(step, GatedStep):
        keeps_late = any(channel.late for channel in channels if channel.source == planned.name)
        columns = needed[planned.origin.name]
        if step.traits.orders_keys:
            order = KeyOrder(step.traits.result_keys, planned.rank)
            columns |= frozenset(order.columns or ())  # until the writers are set
        step = step.pruned(columns, keeps_late=keeps_late)
    return Stage(
        subject=planned.subject,
        kind=planned.kind,
        number=planned.number,
        step=step,
        chain=planned.chain,
        inputs=tuple(channel for channel in channels if channel.target == planned.name),
        outputs=tuple(channel for channel in channels if channel.source == planned.name),
        needed=needed[planned.origin.name] if isinstance(step, SourceStep) else frozenset(),
        rank=planned.rank,
        arrivals=ways.sources.get(planned.name),
        is_uneven=planned.origin.name in ways.uneven,
        key_order=order,
    )


def _with_ordered_sinks(steps: Mapping[str, Step]) -> dict[str, Step]:
    """Return the steps; a sink after replicas puts their rows in order."""
    return {
        name: replace(step, puts_in_order=True)
        if isinstance(step, SinkStep) and step.ordered and leaves_by_key(step.inputs[0], steps)
        else step
        for name, step in steps.items()
    }


def collect_sinks(plan: Plan) -> list[str]:
    """Return the names of a plan's collect sinks."""
    return [step.name for step in plan.sinks if step.output.traits.collects]


def _channels_into(
    target: PlannedStage,
    planned_of: Mapping[str, list[PlannedStage]],
    heads: Mapping[str, str],
    expected: Mapping[str, OutputTraits],
    steps: Mapping[str, Step],
    needed: Mapping[str, frozenset[str]],
    fields: FieldWays,
    ahead: Mapping[tuple[str, str], int],
) -> list[Channel]:
    channels: list[Channel] = []
    origin, is_sink = target.origin, target.step.traits.role is Role.SINK
    late, diverted, is_side = None, None, isinstance(target.step, SideStep)
    if isinstance(target.step, LateStep):
        late = late_of(target.step, needed[target.step.name])
    elif is_side:
        diverted = target.step.inputs[0]
    writer = target.step.writer if isinstance(target.step, SinkStep) else None
    ports, has_gate = origin.traits.ports, target.step.traits.has_gate
    for position, name in enumerate(target.step.inputs):
        port = ports[position]
        twice = target.step.inputs.count(name) > 1
        # A stage that feeds one port twice is two writers there.
        two_writers = [*zip(target.step.inputs, ports, strict=True)].count((name, port)) > 1
        read = columns_read(steps, needed, origin, position)
        came, has_writers = expected[heads[name]], "writers" in fields.given[name]
        replica, keys = target.step.traits.replica, origin.traits.port_keys
        owned = None
        if replica is not None and replica.has_gate and not is_side:
            owned = KeyPart(keys[port], replica.index, even_groups(replica.of))
        channels += [
            Channel(
                name=f"{source.name}→{target.name}" + (f":{position + 1}" if twice else ""),
                feeder=source.subject,
                target=target.name,
                port=port,
                rank=(source.rank << RANK_SHIFT)
                + (number << _PART_SHIFT)
                + (position if two_writers else 0),
                schema=_travelling(origin.schema, needed[origin.name])
                if is_side
                else _travelling(source.last.schema, read),
                row_fields=fields.into(origin, name),
                is_mixed=is_side
                or came.is_disordered
                or ((has_writers or source.mixes_writers) and not source.is_in_time_order),
                may_be_late=not is_side and came.may_be_late,
                needs_promises=has_gate or not is_sink,
                promise_gap_ns=IDLE_PROMISE_NS if holds_nothing(target) else 0,
                idle_ns=came.idle_ns if has_gate else None,
                by_clock=came.by_clock and not is_side and has_gate,
                late=late,
                diverted=diverted,
                shares_writers=has_writers
                and (
                    source.kind == "stateless"
                    or two_writers
                    or source.step.traits.orders_keys
                    or len(planned_of[heads[name]]) > 1
                ),
                owned=owned,
                ahead_ns=ahead.get((origin.name, name), 0),
            )
            for number, source in enumerate(planned_of[heads[name]])
            if writer is None or number == writer.number
        ]
    return channels


def _channels_dealt(
    replica: PlannedStage,
    steps: Mapping[str, Step],
    needed: Mapping[str, frozenset[str]],
    fields: FieldWays,
    *,
    may_be_late: bool,
) -> list[Channel]:
    """Return the channels from a gate to one of its replicas, one for each port."""
    gate, number = replica.gate, replica.replica
    assert gate is not None, "a replica has a gate"
    assert number is not None, "a replica has a number"
    return [
        Channel(
            name=f"{gate.name}→{replica.name}:{port + 1}",
            feeder=gate.subject,
            target=replica.name,
            port=port,
            rank=(gate.number << RANK_SHIFT) + port,
            schema=_travelling(steps[name].schema, columns_read(steps, needed, gate.origin, port)),
            row_fields=fields.into(gate.origin, name) - WRITERS,
            is_mixed=False,
            may_be_late=may_be_late,
            needs_promises=True,
            replica=number.index,
        )
        for port, name in enumerate(gate.step.inputs)
    ]


def _travelling(schema: pa.Schema, read: frozenset[str]) -> pa.Schema:
    return pa.schema([field for field in schema if field.name in read])

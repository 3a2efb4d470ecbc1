"""Test a flow: verify a custom operator; costs, links and faults of a simulation.

    def test_stops() -> None:
        verify_operator(
            lambda buses: buses.key_by("bus").process(Stops, {"bus": "string"}, within="5m"),
            pa.table({"ts": [1, 2], "bus": ["20", "26"]}),
        )

It gives the operator the same rows in many ways, and expects the same results. Our operators are
verified by it, too.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.cuts import Reads, in_order, pieces
from slackwater.ingest.memory import table
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SettingError
from slackwater.runtime.flow import Dataflow, Stream
from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    Column,
    GateRead,
    Progress,
    concat_batches,
)
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.plan.step import EachRowStep, GatedStep, Step
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.plan.traits import Replica
from slackwater.runtime.registry.operators import make_operator, make_stateless
from slackwater.runtime.schedule.source_node import SourceNode
from slackwater.runtime.simulate import (
    ClusterGoes,
    CostModel,
    HostFallsSilent,
    LinkModel,
    SlotDies,
    SlotHangs,
    SlotRaises,
    UserStops,
)
from slackwater.simulated_job import SimulatedJob

__all__ = [
    "ClusterGoes",
    "CostModel",
    "HostFallsSilent",
    "LinkModel",
    "SimulatedJob",
    "SlotDies",
    "SlotHangs",
    "SlotRaises",
    "UserStops",
    "verify_operator",
]

Leaves = list[tuple[Any, ...]]  # (event time, stimulus time, value, value, …)
_REPLICAS = 3


def verify_operator(
    build: Callable[..., Stream],
    *rows: pa.Table,
    event_time: str = "ts",
    seed: int = 0,
    tries: int = 20,
    late: bool = True,
) -> None:
    """Check that an operator keeps the contract of operators.

    However its rows are cut into reads, the same rows leave, to the bit; also if it is restored
    from its snapshot between any two reads. It does not change its rows and its snapshots, keeps
    its promises, and holds nothing at the end. Replicas that share its rows by keys together
    produce the same rows.

    Args:
        build: adds the operator to streams, one for each table, and returns its output.
        rows: the rows of each input, in any order; a few hundred are enough.
        event_time: the event time column; integers are nanoseconds.
        seed: seed of the cuts; the same seed tries the same cuts.
        tries: number of drawn cuts.
        late: whether some rows come late; never for an operator that revises its results.

    Raises:
        AssertionError: it does not; names the fault and the seed.
        SettingError: `build` adds no operator to these streams alone.
        FlowError: the operator cannot be made.
    """
    flow = Dataflow("verify")
    streams = [
        flow.source(f"rows-{number}", table(part.sort_by(event_time)), event_time=event_time)
        for number, part in enumerate(rows, 1)
    ]
    built = build(*streams)
    step = flow.steps[built.name]
    if {*step.inputs} != {stream.name for stream in streams}:
        raise SettingError(
            f"verify_operator: {step.name!r} is fed by {', '.join(step.inputs)}; let build add one "
            "operator to the streams it is given, and to all of them"
        )
    batches = {stream.name: _read(flow.steps[stream.name]) for stream in streams}
    pickle.dumps(step.bare())  # it travels where the user's code does not
    if isinstance(step, EachRowStep):
        _Rows(step, batches[step.inputs[0]], seed).verify(tries)
    elif isinstance(step, GatedStep):
        _Gated(step, [batches[name] for name in step.inputs], seed, late=late).verify(tries)
    else:
        raise SettingError(
            f"verify_operator: {step.name!r} is a {step.traits.kind}; give an operator"
        )


def _read(step: Step) -> Batch:
    """Return all rows of a source, each with its own stimulus time."""
    assert isinstance(step, SourceStep), "it was made by flow.source"
    source = SourceNode(step.name, step.source, step.schema, writer_id=0, start_ns=0)
    read: list[Batch] = []
    while not source.is_ended:
        handed = source.work(END_NS, max_rows=END_NS)
        if handed.rows is not None and len(handed.rows):
            read.append(handed.rows)
    if not read:
        raise SettingError("verify_operator: a table has no rows; give it some")
    rows = concat_batches(read)
    return rows.with_(
        event_time_ns=rows.event_time_ns.copy(), stimulus_time_ns=np.arange(len(rows))
    )


def _check(is_right: bool, step: Step, problem: str) -> None:
    if not is_right:
        raise AssertionError(f"step {step.name!r} ({step.traits.kind}): {problem}")


def _leaves(results: Sequence[Batch | None], names: Sequence[str]) -> Leaves:
    """Return the rows that left as text, for a comparison to the bit."""
    leaves: Leaves = []
    for batch in results:
        if batch is None:
            continue
        columns: list[Column] = [batch.event_time_ns, batch.stimulus_time_ns]
        columns += [batch.columns[name] for name in names]
        values = [c.tolist() if isinstance(c, np.ndarray) else c.to_pylist() for c in columns]
        leaves += [tuple(map(repr, row)) for row in zip(*values, strict=True)]
    return leaves


def _difference(leaves: Leaves, expected: Leaves) -> str:
    for place, (left, other) in enumerate(zip_longest(leaves, expected)):
        if left != other:
            return f"row {place} that left is {left}, and was {other}"
    return ""


class _Rows:
    """Verifies a step that handles each row alone."""

    def __init__(self, step: EachRowStep, rows: Batch, seed: int) -> None:
        self._step, self._rows, self._seed = step, rows, seed

    def verify(self, tries: int) -> None:
        step, rows = self._step, self._rows
        names = step.schema.names
        whole = _leaves([make_stateless(step).apply(rows)], names)
        for turn in range(tries):
            machine = make_stateless(step)
            cut = Random(f"{self._seed}/{turn}")  # noqa: S311 - no secret
            left = [machine.apply(rows.take(own)) for own in pieces(np.arange(len(rows)), cut)]
            leaves = _leaves(left, names)
            _check(
                leaves == whole,
                step,
                f"other rows leave when they come a few at a time: {_difference(leaves, whole)} "
                f"(seed={self._seed})",
            )


class _Gated:
    """Verifies a step after a gate.

    Args:
        step: step to be tested.
        ports: all rows of each input, in order.
        seed: seed of all draws.
        late: whether some rows come late.
    """

    def __init__(self, step: GatedStep, inputs: list[Batch], seed: int, *, late: bool) -> None:
        self._step, self._seed = step, seed
        ports = [
            in_order(
                [rows for rows, at in zip(inputs, step.traits.ports, strict=True) if at == port]
            )
            for port in range(max(step.traits.ports) + 1)
        ]
        self._ordered = Reads(ports, seed, late=False)
        # What is corrected for late rows leaves once more for each read that has some.
        self._reads = Reads(ports, seed, late=late and step.traits.changes != "revisions")
        self._names = step.schema.names

    def verify(self, tries: int) -> None:
        machine = self._made()
        whole = self._run(machine, list(self._reads.cut()))
        dropped = machine.late_dropped
        self._verify_ends(machine)
        self._verify_replicas(whole)
        for turn in range(tries):
            reads = self._cut(self._reads, turn)
            machine = self._made()
            leaves = self._run(machine, reads, spoils=True)
            self._same(leaves, whole, "other rows leave when they are cut otherwise")
            self._verify(machine.late_dropped == dropped, "late_dropped depends on the reads")
            self._verify_restored(self._cut(self._reads, turn), whole)
            self._verify_promises(self._cut(self._ordered, turn))

    def _made(self) -> Operator:
        return make_operator(self._step, most_kept_rows=Limits.most_kept_rows)

    def _verify(self, is_right: bool, problem: str) -> None:
        _check(is_right, self._step, f"{problem} (seed={self._seed})")

    def _same(self, leaves: Leaves, expected: Leaves, problem: str) -> None:
        self._verify(leaves == expected, f"{problem}: {_difference(leaves, expected)}")

    def _run(self, machine: Operator, reads: list[GateRead], *, spoils: bool = False) -> Leaves:
        leaves: Leaves = []
        for read in reads:
            left = machine.work(read, 0).rows
            self._verify(left is None or len(left) > 0, "it returned a batch of no rows, not None")
            leaves += _leaves([left], self._names)
            if spoils:  # an operator that keeps a view shows it
                for batch in (*read.ports, *read.late):
                    _spoil(batch)
        return leaves

    def _verify_ends(self, machine: Operator) -> None:
        self._verify(machine.rows_held == 0, f"it holds {machine.rows_held} rows after the end")
        nothing: list[Batch | None] = [None] * (max(self._step.traits.ports) + 1)
        end = machine.work(GateRead(nothing, nothing, END_NS, Progress(END_NS, 0)), 0)
        self._verify(end.promise_ns == END_NS, "it does not promise the end")

    def _verify_restored(self, reads: list[GateRead], whole: Leaves) -> None:
        machine = self._made()
        leaves: Leaves = []
        for read in reads:
            state = pickle.dumps(to_plain(save(machine)))
            held = machine.rows_held, machine.late_dropped
            machine = self._made()
            restore(machine, from_plain(pickle.loads(state)))  # noqa: S301
            now = machine.rows_held, machine.late_dropped
            self._verify(held == now, f"restored it holds {now} rows, late ones, and held {held}")
            leaves += _leaves([machine.work(read, 0).rows], self._names)
        self._same(leaves, whole, "other rows leave when it goes on from its snapshots")
        half = len(reads) // 2
        machine = self._made()
        self._run(machine, reads[:half])
        plain = to_plain(save(machine))
        pickled = pickle.dumps(plain)
        self._run(machine, reads[half:])
        self._verify(pickle.dumps(plain) == pickled, "a snapshot changes when it goes on")

    def _verify_promises(self, reads: list[GateRead]) -> None:
        """Verify that leaving rows are in order, and not older than a promise."""
        machine, promised_ns = self._made(), START_NS
        for read in reads:
            left, following_ns, *_ = machine.work(read, 0)
            if left is not None:
                times = left.event_time_ns
                self._verify(bool((times[1:] >= times[:-1]).all()), "rows leave out of order")
                self._verify(
                    times.item(0) >= promised_ns,
                    f"a row of {times.item(0)} left when {promised_ns} had been promised",
                )
            self._verify(following_ns >= promised_ns, "its promise runs back")
            promised_ns = following_ns

    def _verify_replicas(self, whole: Leaves) -> None:
        """Verify that replicas that share the rows by keys make together what one makes."""
        if not all(self._step.traits.port_keys):
            return
        replicas = [
            make_operator(
                self._step.part(f"{self._step.name}.{n + 1}", Replica(n, _REPLICAS, "keys")),
                most_kept_rows=Limits.most_kept_rows,
            )
            for n in range(_REPLICAS)
        ]
        leaves: Counter[tuple[Any, ...]] = Counter()
        for read in self._reads.cut():
            for number, machine in enumerate(replicas):
                own = replace(
                    read,
                    ports=[self._share(rows, port, number) for port, rows in enumerate(read.ports)],
                    late=[self._share(rows, port, number) for port, rows in enumerate(read.late)],
                )
                leaves.update(_leaves([machine.work(own, 0).rows], self._names))
        self._verify(
            leaves == Counter(whole), f"{_REPLICAS} replicas make other rows than one operator does"
        )

    def _cut(self, reads: Reads, turn: int) -> list[GateRead]:
        return list(reads.cut(Random(f"{self._seed}/{turn}")))  # noqa: S311 - no secret

    def _share(self, rows: Batch | None, port: int, replica: int) -> Batch | None:
        """Return the rows whose keys belong to a replica."""
        if rows is None:
            return None
        columns = [rows.columns[name] for name in self._step.traits.port_keys[port]]
        values = [c.tolist() if isinstance(c, np.ndarray) else c.to_pylist() for c in columns]
        is_own = [
            sum(repr(key).encode()) % _REPLICAS == replica for key in zip(*values, strict=True)
        ]
        return rows.keep(np.array(is_own)) if any(is_own) else None


def _spoil(batch: Batch | None) -> None:
    if batch is not None:
        batch.event_time_ns[:] = -1
        for column in batch.columns.values():
            if isinstance(column, np.ndarray):
                column[:] = 0
            elif isinstance(column, Nullable):
                column.valid[:] = False

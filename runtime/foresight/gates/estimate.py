"""Latency of a flow with gates: what rows wait in them, and what the work takes, put together.

```
work without gates ─▶ when promises come ─▶ when gates let rows go ─▶ work, as it gets there
                              ▲                                          │
                              └────────────── until it stays ────────────┘
```

A row that waits in a gate takes no CPU. What it waits for is the work on others' rows further up;
and what a gate lets go at once comes as a burst to what is behind it. So neither is known without
the other, and both are computed by turns until they agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.foresight.gates.gated import GatedOperator
from slackwater.runtime.foresight.gates.passage import Passage, passage
from slackwater.runtime.foresight.gates.release import GateTimes
from slackwater.runtime.foresight.gates.streams import (
    Rows,
    Series,
    counted,
    earliest_s,
    gathered,
    longest_s,
)
from slackwater.runtime.foresight.held_up import HeldBack, HeldUp, held_up
from slackwater.runtime.foresight.latency_estimate import LatencyEstimate, estimate_latency
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, Workload, arrivals_of
from slackwater.runtime.foresight.units import ONE_EVENT, Slices
from slackwater.runtime.model import NS_PER_SECOND

__all__ = ["GateWait", "GatedEstimate", "GatedFlow", "estimate_gated"]

ROUNDS = 12
FREE_ROUNDS = 2
"""From then on half of what a round changes counts: where what is held back longer comes in a
larger burst, which holds back the next less, whole steps go to and fro for ever."""
MOST_LOAD = 2.0
"""Of a node, in its capacities: above it waits in gates are nothing beside its backlog."""
AGREED = 0.05
"""Of a subinterval: by how much the worst latency, and latencies on average, may still change."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GatedFlow:
    """What is known of a flow and its sources.

    Attributes:
        graph: all stages.
        gated: {stage: its gate}, of those behind one.
        sources: {source: its rows and promises over the time ahead, and some time more}.
        sampled: {source: rows of the sample}, from which is known how many pairs give how many
            results; None: from the rates of the graph alone.
    """

    graph: QueryGraph
    gated: Mapping[str, GatedOperator]
    sources: Mapping[str, Series]
    sampled: Mapping[str, Series] | None = None


@dataclass(frozen=True, kw_only=True)
class GateWait:
    """What rows wait in one gate.

    Attributes:
        name: of the stage.
        rule: when it lets rows go, in words.
        longest_s: the longest wait of a row; infinite: some stay for longer than is looked ahead.
        mean_s: over its rows.
        waits_for: the input that promises last; what it feeds waits for it.
        late: share of the rows that come behind what has left.
    """

    name: str
    rule: str
    longest_s: float
    mean_s: float
    waits_for: str
    late: float


@dataclass(frozen=True, eq=False, kw_only=True)
class GatedEstimate:
    """What is predicted.

    Attributes:
        latency: gates and work together in `held_up_s`; Mace as it is without gates.
        gate_s: shape (d,), the gates' part: the longest that a result of each subinterval would
            take if all work took no time.
        work_s: shape (d,), what it would take without gates.
        gates: one for each.
        work: what there is to do.
    """

    latency: LatencyEstimate
    gate_s: FloatArray
    work_s: FloatArray
    gates: tuple[GateWait, ...]
    work: Workload


def estimate_gated(
    flow: GatedFlow,
    placement: Mapping[str, str],
    capacity: Mapping[str, float],
    *,
    d: int,
    width_s: float,
    hop_s: Mapping[tuple[str, str], float] | None = None,
    least_hop_s: Mapping[tuple[str, str], float] | None = None,
    slices: Slices = ONE_EVENT,
) -> GatedEstimate:
    """Return what the latency of a flow with gates will be.

    Args:
        flow: what is known of it.
        placement: {stage: node}.
        capacity: {node: C_i}.
        d: how many subintervals.
        width_s: how long each is.
        hop_s: {(node, node): how long a row travels from one to the other, at most}.
        least_hop_s: the same, at least; None: always as long.
        slices: how work is cut.

    Raises:
        SettingError: as `estimate_latency`.
    """
    graph = flow.graph
    hops = hop_s or {}

    def travels_s(a: str, b: str) -> float:
        return hops.get((placement[a], placement[b]), 0.0)

    pairs = _pairs(flow, width_s)
    alone = passage(graph, flow.gated, flow.sources, width_s=width_s, pairs=pairs)
    work = _workload(flow, alone, d, width_s)
    base = estimate_latency(
        graph, work, placement, capacity, hop_s=hop_s, least_hop_s=least_hop_s, slices=slices
    )
    gate_s = _longest_s(graph, alone, width_s, d)
    sources = [one.rows for one in flow.sources.values()]
    holds = bool(flow.gated) or any((one.at_s > one.stimulus_s).any() for one in sources)
    if not holds or any(node.load > MOST_LOAD for node in base.nodes):
        return GatedEstimate(
            latency=base, gate_s=gate_s, work_s=base.held_up_s, gates=(), work=work
        )
    names = list(capacity)
    nodes = [names.index(placement[one.name]) for one in graph.operators]
    speed = np.array([capacity[name] for name in names])
    between = np.array([[hops.get((a, b), 0.0) for b in names] for a in names])
    found, latency_s = alone, gate_s
    alone_s = {one.name: one.alone_s / capacity[placement[one.name]] for one in graph.operators}
    queued = graph.counting_alone(0.0)  # a row's own work is counted on its way, below
    done: HeldUp | None = None
    took_s: dict[str, list[FloatArray]] = {}
    for turn in range(ROUNDS):
        gone, counts = _released(flow, found, width_s)
        done = held_up(queued, counts, nodes, speed, hop_s=between, gates=gone, before=done)
        took_s = {
            one.name: [
                _settled(now_s, took_s[one.name][n]) if turn >= FREE_ROUNDS else now_s
                for n, now_s in enumerate(done.took_s[j])
            ]
            for j, one in enumerate(graph.operators)
        }
        found = passage(
            graph,
            flow.gated,
            flow.sources,
            width_s=width_s,
            pairs=pairs,
            work=took_s,
            alone_s=alone_s,
            hop_s=travels_s,
        )
        before_s, latency_s = latency_s, _longest_s(graph, found, width_s, d)
        worst_s = abs(float(latency_s.max(initial=0.0) - before_s.max(initial=0.0)))
        if max(worst_s, float(np.abs(latency_s - before_s).mean())) <= AGREED * width_s:
            break
    gates = tuple(
        _wait(gate, _feeds_of(flow, gate), found, d * width_s)
        for gate in flow.gated.values()
        if gate.gate is None
    )
    # Whatever waits, work is not done earlier than it comes: no order of it beats Mace.
    held_up_s = np.maximum(latency_s, _of_results(base))
    latency = replace(
        base,
        held_up_s=held_up_s,
        # Of work in finer parts; this is not: the bound is no lower than that of work alone.
        spread_s=max(base.worst_s + base.spread_s - float(held_up_s.max(initial=0.0)), 0.0),
        is_held=any(np.isinf(one.longest_s) for one in gates),
    )
    return GatedEstimate(
        latency=latency, gate_s=gate_s, work_s=base.held_up_s, gates=gates, work=work
    )


def _settled(now_s: FloatArray, before_s: FloatArray) -> FloatArray:
    """Return the mean of two rounds, of which one may look further ahead."""
    found = now_s.copy()
    both = min(len(now_s), len(before_s))
    found[:both] = (now_s[:both] + before_s[:both]) / 2
    return found


def _of_results(base: LatencyEstimate) -> FloatArray:
    """Return Mace of the subintervals that have results: [mace] Theorem 2, from below."""
    return np.where(base.has_result, base.mace_s, 0.0)


def _pairs(flow: GatedFlow, width_s: float) -> dict[str, float]:
    """Return {join: results of a pair that is near enough}, as the sample shows."""
    of = flow.sources if flow.sampled is None else flow.sampled
    found = passage(flow.graph, flow.gated, of, width_s=width_s)
    results = {}
    for one in flow.graph.operators:
        if found.made.get(one.name):
            came = sum(
                selectivity * float(found.leaves[name].rows.count.sum())
                for name, selectivity in zip(one.inputs, one.selectivity, strict=True)
            )
            results[one.name] = came / found.made[one.name]
    return results


def _workload(flow: GatedFlow, passed: Passage, d: int, width_s: float) -> Workload:
    """Return what there is to do: results of joins and windows when their stimuli are."""
    out: dict[str, FloatArray] = {
        arrivals_of(name): counted(series.rows.stimulus_s, series.rows.count, width_s, d)
        for name, series in flow.sources.items()
    }
    loads = []
    for one in flow.graph.operators:
        came = np.stack([out[name] for name in one.inputs])
        loads.append(one.load(came, width_s))
        gate = flow.gated.get(one.name)
        if gate is None or gate.makes == "rows":
            out[one.name] = one.output(came, width_s)
            continue
        rows = passed.leaves[one.name].rows
        left = counted(rows.stimulus_s, rows.count, width_s, d)
        if gate.makes != "pairs":  # they are not known by their number, but by when they come
            left = left * one.output(came, width_s).sum() / max(float(left.sum()), 1e-300)
        out[one.name] = left
    return Workload(width_s, out, np.stack(loads))


def _longest_s(graph: QueryGraph, passed: Passage, width_s: float, d: int) -> FloatArray:
    """Return the longest from stimulus to egress of the results of each subinterval."""
    each = [longest_s(passed.leaves[name].rows, width_s, d) for name in graph.sinks]
    return np.asarray(np.max(each, axis=0))


def _released(
    flow: GatedFlow, passed: Passage, width_s: float
) -> tuple[dict[int, HeldBack], Workload]:
    """Return what gates let go when, and all that leaves, by when it left the last gate."""
    leaves = passed.leaves
    ends_s = [_last_s(series.rows.left_s) for series in leaves.values()]
    d = int(max(ends_s) / width_s) + 2
    out: dict[str, FloatArray] = {
        arrivals_of(name): counted(series.rows.left_s, series.rows.count, width_s, d)
        for name, series in flow.sources.items()
    }
    gone, loads = {}, []
    for j, one in enumerate(flow.graph.operators):
        gate, rows = flow.gated.get(one.name), leaves[one.name].rows
        if gate is not None:
            counts = [_let_go(flow, gate, passed, name, width_s, d) for name in one.inputs]
            let_go_s = earliest_s(_let_go_by(passed.gates[gate.name]), width_s, d)
            gone[j] = HeldBack(counts, let_go_s, earliest_s(rows, width_s, d))
            came, out[one.name] = np.stack(counts), counted(rows.left_s, rows.count, width_s, d)
        else:
            came = np.stack([out[name] for name in one.inputs])
            out[one.name] = one.output(came, width_s)
        loads.append(one.load(came, width_s))
    return gone, Workload(width_s, out, np.stack(loads))


def _let_go_by(times: GateTimes) -> Rows:
    """Return the rows that a gate lets go, with the stimulus of what comes to it then."""
    return gathered(
        [
            replace(one.rows, stimulus_s=times.let_go_stimulus_s(released_s), left_s=released_s)
            for one, released_s in zip(times.inputs, times.released_s, strict=True)
        ]
    )


def _let_go(
    flow: GatedFlow, gate: GatedOperator, passed: Passage, feeder: str, width_s: float, d: int
) -> FloatArray:
    """Return the rows of one input that its gate lets go in each subinterval, shape (d,).

    A row that comes through several channels, of a stream joined with itself, is one.
    """
    times = passed.gates[gate.name]
    feeds = _feeds_of(flow, gate)
    parts = [
        counted(released_s, came.rows.count, width_s, d)
        for (name, _), came, released_s in zip(feeds, times.inputs, times.released_s, strict=True)
        if gate.gate is not None or name == feeder
    ]
    total = np.asarray(np.sum(parts, axis=0))
    return total if gate.gate is not None else total / len(parts)


def _feeds_of(flow: GatedFlow, gate: GatedOperator) -> Sequence[tuple[str, int]]:
    """Return what feeds a gate; of a replica, the gate that it shares."""
    return gate.feeds if gate.gate is None else flow.gated[gate.gate].feeds


def _last_s(times_s: FloatArray) -> float:
    return float(times_s[np.isfinite(times_s)].max(initial=0.0))


def _wait(
    gate: GatedOperator, feeds: Sequence[tuple[str, int]], passed: Passage, until_s: float
) -> GateWait:
    times = passed.gates[gate.name]
    waits: list[FloatArray] = []
    counts: list[FloatArray] = []
    late = total = held = 0.0
    for series, released_s in zip(times.inputs, times.released_s, strict=True):
        rows = series.rows
        ahead = rows.stimulus_s < until_s
        known = np.isfinite(released_s) & ahead
        # What never comes to it is held by a gate further up.
        held += float(rows.count[ahead & ~known & np.isfinite(rows.at_s)].sum())
        waits.append(released_s[known] - rows.at_s[known])
        counts.append(rows.count[known])
        passed_s = times.passed_s(rows.event_s[known] + 1 / NS_PER_SECOND)  # by what is newer
        late += float(counts[-1][passed_s < rows.at_s[known] - 1e-9].sum())
        total += float(rows.count[ahead].sum())
    all_s, weights = np.concatenate(waits), np.concatenate(counts)
    never = held > 0 or (total > 0 and not len(all_s))
    return GateWait(
        name=gate.name,
        rule=times.rule.text,
        longest_s=np.inf if never else float(all_s.max(initial=0.0)),
        mean_s=float((all_s * weights).sum() / weights.sum()) if weights.sum() > 0 else 0.0,
        waits_for=feeds[_last_promised(times) if never else _slowest(times, until_s)][0],
        late=late / total if total else 0.0,
    )


def _last_promised(times: GateTimes) -> int:
    """Return the input whose promises end first."""
    return int(np.argmin([one.promises.event_s.max(initial=-np.inf) for one in times.inputs]))


def _slowest(times: GateTimes, until_s: float) -> int:
    """Return the input that holds the others up longest, all times put together."""
    reached = np.stack([one.promises.reached_s(times.frontier.event_s) for one in times.inputs])
    reached = reached[:, times.frontier.at_s < until_s]
    ended = [not len(one.promises.event_s) for one in times.inputs]
    if any(ended) or not reached.size:
        return int(np.argmax(ended))
    return int(np.argmax((reached - reached.min(axis=0)).sum(axis=1)))

"""Latency of a flow with gates: waits of rows in them, combined with the work.

```
work without gates ─▶ times of promises ─▶ release times of gates ─▶ work, by its arrival
                              ▲                                          │
                              └────────────── until it settles ──────────┘
```

A row that waits in a gate takes no CPU. It waits for the work on other rows upstream; and rows that
a gate releases together reach later stages as a burst. So neither is known without the other, and
both are computed in turn until they agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

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
from slackwater.runtime.json_form import JsonView, View
from slackwater.runtime.model import NS_PER_SECOND

__all__ = ["GateWait", "GatedEstimate", "GatedFlow", "estimate_gated"]

ROUNDS = 12
FREE_ROUNDS = 2
"""Rounds whose changes count in full; then half of a change counts. Rows held back longer come in a
larger burst, which holds back the next rows less, so whole steps would oscillate for ever."""
MOST_LOAD = 2.0
"""Load of a node, in its capacities, above which its backlog outweighs all waits in gates."""
AGREED = 0.05
"""Largest change of the worst and mean latency at the end, as a share of a subinterval."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GatedFlow:
    """Flow with gates, and its sources.

    Attributes:
        graph: all stages.
        gated: {stage: its gate}, of the stages after a gate.
        sources: {source: its rows and promises over the time ahead and longer}.
        sampled: {source: rows of the sample}, which show the results of a pair; None if
            only the rates of the graph show them.
    """

    graph: QueryGraph
    gated: Mapping[str, GatedOperator]
    sources: Mapping[str, Series]
    sampled: Mapping[str, Series] | None = None


@dataclass(frozen=True, kw_only=True)
class GateWait(JsonView):
    """Waits of rows in one gate.

    Attributes:
        name: name of the stage.
        rule: its release rule, in words.
        longest_s: longest wait of a row; infinite: some rows stay longer than the time ahead.
        mean_s: mean wait of its rows.
        waits_for: the input that promises last, so that rows wait for it.
        late: share of its rows that are older than rows that have left.
    """

    name: str
    rule: str
    longest_s: float
    mean_s: float
    waits_for: str
    late: float

    JSON: ClassVar[View] = {
        "name": "name",
        "rule": "rule",
        "longest_s": "longest_s",
        "mean_s": "mean_s",
        "waits_for": "waits_for",
        "late": "late",
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class GatedEstimate:
    """Estimate of a flow with gates.

    Attributes:
        latency: the estimate, with gates and work in `held_up_s`; Mace is without gates.
        gate_s: shape (d,), part of the gates: longest latency of each subinterval's results if work
            took no time.
        work_s: shape (d,), latency without gates.
        gates: waits in each gate.
        work: work of each operator.
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
    """Return the latency estimate of a flow with gates.

    Args:
        flow: the flow and its sources.
        placement: {stage: node}, for all stages and links.
        capacity: {node: C_i}, for all nodes and links.
        d: number of subintervals ahead.
        width_s: length of a subinterval, seconds.
        hop_s: {(from node, to node): longest travel time of a row}.
        least_hop_s: the same, shortest; None if equal to the longest.
        slices: rule by which work is cut.

    Raises:
        SettingError: as for `estimate_latency`.
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
    sources = [series.rows for series in flow.sources.values()]
    holds = bool(flow.gated) or any((rows.at_s > rows.stimulus_s).any() for rows in sources)
    if not holds or any(node.load > MOST_LOAD for node in base.nodes):
        return GatedEstimate(
            latency=base, gate_s=gate_s, work_s=base.held_up_s, gates=(), work=work
        )
    names = list(capacity)
    nodes = [names.index(placement[name]) for name in graph.names]
    speed = np.array([capacity[name] for name in names])
    between = np.array([[hops.get((a, b), 0.0) for b in names] for a in names])
    passed, latency_s = alone, gate_s
    alone_s = {each.name: each.alone_s / capacity[placement[each.name]] for each in graph.operators}
    queued = graph.counting_alone(0.0)  # the passage below counts a row's own work
    done: HeldUp | None = None
    took_s: dict[str, list[FloatArray]] = {}
    for turn in range(ROUNDS):
        releases, counts = _released(flow, passed, width_s)
        done = held_up(queued, counts, nodes, speed, hop_s=between, gates=releases, before=done)
        took_s = {
            name: [
                _settled(now_s, took_s[name][n]) if turn >= FREE_ROUNDS else now_s
                for n, now_s in enumerate(done.took_s[j])
            ]
            for j, name in enumerate(graph.names)
        }
        passed = passage(
            graph,
            flow.gated,
            flow.sources,
            width_s=width_s,
            pairs=pairs,
            work=took_s,
            alone_s=alone_s,
            hop_s=travels_s,
        )
        before_s, latency_s = latency_s, _longest_s(graph, passed, width_s, d)
        worst_s = abs(float(latency_s.max(initial=0.0) - before_s.max(initial=0.0)))
        if max(worst_s, float(np.abs(latency_s - before_s).mean())) <= AGREED * width_s:
            break
    gates = tuple(
        _wait(gate, passed, d * width_s) for gate in flow.gated.values() if gate.gate is None
    )
    # Work is never done before it arrives: no order of it is faster than Mace.
    held_up_s = np.maximum(latency_s, _of_results(base))
    latency = replace(
        base,
        held_up_s=held_up_s,
        # Work was in finer parts, this is not: the bound stays at least that of work alone.
        spread_s=max(base.worst_s + base.spread_s - float(held_up_s.max(initial=0.0)), 0.0),
        is_held=any(np.isinf(gate.longest_s) for gate in gates),
    )
    return GatedEstimate(
        latency=latency, gate_s=gate_s, work_s=base.held_up_s, gates=gates, work=work
    )


def _settled(now_s: FloatArray, before_s: FloatArray) -> FloatArray:
    """Return the mean of two rounds of different length."""
    mean_s = now_s.copy()
    both = min(len(now_s), len(before_s))
    mean_s[:both] = (now_s[:both] + before_s[:both]) / 2
    return mean_s


def _of_results(base: LatencyEstimate) -> FloatArray:
    # The lower bound of [mace] Theorem 2.
    return np.where(base.has_result, base.mace_s, 0.0)


def _pairs(flow: GatedFlow, width_s: float) -> dict[str, float]:
    """Return {join: results of a pair in reach}, as the sample shows."""
    of = flow.sources if flow.sampled is None else flow.sampled
    passed = passage(flow.graph, flow.gated, of, width_s=width_s)
    results = {}
    for join in flow.graph.operators:
        if passed.made.get(join.name):
            came = sum(
                selectivity * float(passed.leaves[name].rows.count.sum())
                for name, selectivity in zip(join.inputs, join.selectivity, strict=True)
            )
            results[join.name] = came / passed.made[join.name]
    return results


def _workload(flow: GatedFlow, passed: Passage, d: int, width_s: float) -> Workload:
    """Return the workload, with results of joins and windows at their stimuli."""
    out: dict[str, FloatArray] = {
        arrivals_of(name): counted(series.rows.stimulus_s, series.rows.count, width_s, d)
        for name, series in flow.sources.items()
    }
    loads = []
    for operator in flow.graph.operators:
        came = np.stack([out[name] for name in operator.inputs])
        loads.append(operator.load(came, width_s))
        gate = flow.gated.get(operator.name)
        if gate is None or gate.makes == "rows":
            out[operator.name] = operator.output(came, width_s)
            continue
        rows = passed.leaves[operator.name].rows
        left = counted(rows.stimulus_s, rows.count, width_s, d)
        if gate.makes != "pairs":  # the passage knows their times, but not their number
            left = left * operator.output(came, width_s).sum() / max(float(left.sum()), 1e-300)
        out[operator.name] = left
    return Workload(width_s, out, np.stack(loads))


def _longest_s(graph: QueryGraph, passed: Passage, width_s: float, d: int) -> FloatArray:
    """Return the longest latency of the results of each subinterval."""
    each = [longest_s(passed.leaves[name].rows, width_s, d) for name in graph.sinks]
    return np.asarray(np.max(each, axis=0))


def _released(
    flow: GatedFlow, passed: Passage, width_s: float
) -> tuple[dict[int, HeldBack], Workload]:
    """Return releases of gates, and the workload by the times of leaving gates."""
    leaves = passed.leaves
    ends_s = [_last_s(series.rows.left_s) for series in leaves.values()]
    d = int(max(ends_s) / width_s) + 2
    out: dict[str, FloatArray] = {
        arrivals_of(name): counted(series.rows.left_s, series.rows.count, width_s, d)
        for name, series in flow.sources.items()
    }
    releases, loads = {}, []
    for j, operator in enumerate(flow.graph.operators):
        gate, rows = flow.gated.get(operator.name), leaves[operator.name].rows
        if gate is not None:
            counts = [_rows_released(gate, passed, n, width_s, d) for n in operator.inputs]
            first_release_s = earliest_s(_by_release(passed.gates[gate.name]), width_s, d)
            releases[j] = HeldBack(counts, first_release_s, earliest_s(rows, width_s, d))
            came = np.stack(counts)
            out[operator.name] = counted(rows.left_s, rows.count, width_s, d)
        else:
            came = np.stack([out[name] for name in operator.inputs])
            out[operator.name] = operator.output(came, width_s)
        loads.append(operator.load(came, width_s))
    return releases, Workload(width_s, out, np.stack(loads))


def _by_release(times: GateTimes) -> Rows:
    """Return the rows that a gate releases, with the stimulus of their release."""
    return gathered(
        [
            replace(came.rows, stimulus_s=times.release_stimulus_s(released_s), left_s=released_s)
            for came, released_s in zip(times.inputs, times.released_s, strict=True)
        ]
    )


def _rows_released(
    gate: GatedOperator, passed: Passage, feeder: str, width_s: float, d: int
) -> FloatArray:
    """Return the rows of one input that its gate releases in each subinterval, shape (d,).

    A row on several channels, of a stream joined with itself, counts once.
    """
    times = passed.gates[gate.name]
    feeders = [name for name, _ in gate.feeds]
    parts = [
        counted(released_s, came.rows.count, width_s, d)
        for name, came, released_s in zip(feeders, times.inputs, times.released_s, strict=True)
        if gate.gate is not None or name == feeder
    ]
    total = np.asarray(np.sum(parts, axis=0))
    return total if gate.gate is not None else total / len(parts)


def _last_s(times_s: FloatArray) -> float:
    return float(times_s[np.isfinite(times_s)].max(initial=0.0))


def _wait(gate: GatedOperator, passed: Passage, until_s: float) -> GateWait:
    times = passed.gates[gate.name]
    waits: list[FloatArray] = []
    counts: list[FloatArray] = []
    late = total = held = 0.0
    for series, released_s in zip(times.inputs, times.released_s, strict=True):
        rows = series.rows
        ahead = rows.stimulus_s < until_s
        known = np.isfinite(released_s) & ahead
        # A gate upstream holds the rows that never arrive here.
        held += float(rows.count[ahead & ~known & np.isfinite(rows.at_s)].sum())
        waits.append(released_s[known] - rows.at_s[known])
        counts.append(rows.count[known])
        passed_s = times.passed_s(rows.event_s[known] + 1 / NS_PER_SECOND)  # by newer rows
        late += float(counts[-1][passed_s < rows.at_s[known] - 1e-9].sum())
        total += float(rows.count[ahead].sum())
    all_s, weights = np.concatenate(waits), np.concatenate(counts)
    never = held > 0 or (total > 0 and not len(all_s))
    return GateWait(
        name=gate.name,
        rule=times.rule.text,
        longest_s=np.inf if never else float(all_s.max(initial=0.0)),
        mean_s=float((all_s * weights).sum() / weights.sum()) if weights.sum() > 0 else 0.0,
        waits_for=gate.feeds[_last_promised(times) if never else _slowest(times, until_s)][0],
        late=late / total if total else 0.0,
    )


def _last_promised(times: GateTimes) -> int:
    """Return the input whose promises end first."""
    lasts_s = [came.promises.event_s.max(initial=-np.inf) for came in times.inputs]
    return int(np.argmin(lasts_s))


def _slowest(times: GateTimes, until_s: float) -> int:
    """Return the input that holds the others up longest, summed over all times."""
    event_s = times.frontier.event_s
    reached = np.stack([came.promises.reached_s(event_s) for came in times.inputs])
    reached = reached[:, times.frontier.at_s < until_s]
    ended = [not len(came.promises.event_s) for came in times.inputs]
    if any(ended) or not reached.size:
        return int(np.argmax(ended))
    return int(np.argmax((reached - reached.min(axis=0)).sum(axis=1)))

"""Passage of rows and promises through all stages, with waits in gates.

No flow runs: a few rows stand for all, and each gate computes the release of all its rows at once,
by the promises of its inputs (`release.py`). The time of each stage's work is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from slackwater.runtime.foresight.gates.gated import GatedOperator
from slackwater.runtime.foresight.gates.release import (
    GateTimes,
    delayed,
    delayed_rows,
    frontier_of,
    gate_times,
)
from slackwater.runtime.foresight.gates.results import (
    pairs_of,
    time_bound,
    waiting,
    window_promises,
    windows_of,
)
from slackwater.runtime.foresight.gates.streams import (
    Promises,
    Rows,
    Series,
    gathered,
    thinned,
    whole,
)
from slackwater.runtime.foresight.query_graph import (
    FloatArray,
    QueryGraph,
    QueryOperator,
    arrivals_of,
)

__all__ = ["Passage", "Work", "passage"]

MOST_ROWS = 12
"""Rows of a stage that stand for all rows of a subinterval."""

Work = Mapping[str, Sequence[FloatArray]]
"""{stage: for each input shape (d,), time from the arrival of a subinterval's last row to the end
of the work on its rows}; subintervals are by the time when rows left the last gate or source."""


@dataclass(frozen=True, eq=False)
class Passage:
    """Result of a passage.

    Attributes:
        leaves: {stage: rows and promises that leave it}.
        gates: {stage: releases of its gate}; of a replica, its arrivals.
        released: {gated stage: for each feed its rows, as the gate releases them}.
        made: {gated stage: number of its results, before its selectivity}.
    """

    leaves: dict[str, Series] = field(default_factory=dict)
    gates: dict[str, GateTimes] = field(default_factory=dict)
    released: dict[str, list[Rows]] = field(default_factory=dict)
    made: dict[str, float] = field(default_factory=dict)


def passage(
    graph: QueryGraph,
    gated: Mapping[str, GatedOperator],
    sources: Mapping[str, Series],
    *,
    width_s: float,
    pairs: Mapping[str, float] | None = None,
    work: Work | None = None,
    alone_s: Mapping[str, float] | None = None,
    hop_s: Callable[[str, str], float] | None = None,
) -> Passage:
    """Return the passage of the rows of all sources.

    Args:
        graph: all stages, in topological order.
        gated: {stage: its gate}, of the stages after a gate.
        sources: {source: its rows and promises}.
        width_s: w, length of the subintervals of `work`.
        pairs: {join: results of a pair in reach}; absent: 1.
        work: time of each stage's work; None if it takes no time.
        alone_s: {stage: time of a row that waits for no other}.
        hop_s: travel time of a row between two stages; None if it takes no time.
    """
    way = _Way(gated, width_s, pairs or {}, work or {}, alone_s or {}, hop_s)
    for operator in graph.operators:
        way.go(operator, sources)
    return way.done


class _Way:
    def __init__(
        self,
        gated: Mapping[str, GatedOperator],
        width_s: float,
        pairs: Mapping[str, float],
        work: Work,
        alone_s: Mapping[str, float],
        hop_s: Callable[[str, str], float] | None,
    ) -> None:
        self._gated, self._width_s, self._pairs = gated, width_s, pairs
        self._work, self._alone_s, self._hop_s = work, alone_s, hop_s
        self.done = Passage()

    def go(self, operator: QueryOperator, sources: Mapping[str, Series]) -> None:
        """Pass the rows of the next stage."""
        stage, gate = operator.name, self._gated.get(operator.name)
        if gate is not None:
            series = self._after_gate(operator, gate)
        else:
            came = [
                sources[stage] if name == arrivals_of(stage) else self._came(name, stage)
                for name in operator.inputs
            ]
            parts = [
                _selected(self._worked(stage, n, each.rows), operator.selectivity[n])
                for n, each in enumerate(came)
            ]
            promises = [self._promised(stage, each.promises) for each in came]
            least = promises[0] if len(promises) == 1 else frontier_of(promises)
            series = Series(gathered(parts), least)
        rows = series.rows
        if gate is None or gate.makes == "rows":
            rows = whole(rows, np.random.default_rng(len(self.done.leaves)))
        rows = thinned(rows, self._width_s, MOST_ROWS)
        self.done.leaves[stage] = Series(rows, series.promises)

    def _came(self, feeder: str, to: str) -> Series:
        series, hop_s = self.done.leaves[feeder], self._travels_s(feeder, to)
        return Series(delayed_rows(series.rows, hop_s), delayed(series.promises, hop_s))

    def _travels_s(self, feeder: str, to: str) -> float:
        return 0.0 if self._hop_s is None else self._hop_s(feeder, to)

    def _worked(self, stage: str, n: int, rows: Rows) -> Rows:
        took_s = self._took_s(stage, n, rows.left_s, rows.event_s, rows.count)
        return delayed_rows(rows, took_s)

    def _took_s(
        self, stage: str, n: int, left_s: FloatArray, event_s: FloatArray, count: FloatArray
    ) -> FloatArray:
        if stage not in self._work or not len(left_s):
            return np.zeros(len(left_s))
        queued_s = _shared_out(self._work[stage][n], self._width_s, left_s, event_s, count)
        return np.maximum(queued_s, self._alone_s.get(stage, 0.0))

    def _promised(self, stage: str, promises: Promises, inputs: int = 1) -> Promises:
        """Return promises after the work on the rows before them."""
        times_s, even = promises.left_s, np.ones(len(promises.left_s))
        each = [self._took_s(stage, n, times_s, promises.event_s, even) for n in range(inputs)]
        return delayed(promises, np.max(each, axis=0))

    def _after_gate(self, operator: QueryOperator, gate: GatedOperator) -> Series:
        times = self._gate_of(gate)
        self.done.gates[operator.name] = times
        released, selected = [], []
        feeders = [feeder for feeder, _ in gate.feeds]
        for feeder, came, released_s in zip(feeders, times.inputs, times.released_s, strict=True):
            n = operator.inputs.index(gate.comes_by or feeder)
            released.append(replace(came.rows, left_s=released_s, at_s=released_s))
            # A stream joined with itself is one input of the graph, with two channels.
            channels = 1 if gate.comes_by else feeders.count(feeder)
            selected.append(_selected(released[-1], operator.selectivity[n] / channels))
        self.done.released[operator.name] = released
        promises = replace(times.frontier, left_s=times.frontier.at_s)
        if gate.makes == "pairs":
            ports = [port for _, port in gate.feeds]
            left, right = (
                thinned(_of_port(released, ports, port), self._width_s, MOST_ROWS)
                for port in (0, 1)
            )
            rows = pairs_of(left, right, gate.within_s)
            self.done.made[operator.name] = float(rows.count.sum())
            rows = _selected(rows, self._pairs.get(operator.name, 1.0))
        elif gate.makes == "windows" and gate.slide_s > 0:
            rows = windows_of(times, slide_s=gate.slide_s, from_s=gate.from_s)
            total = sum(float(each.count.sum()) for each in selected)
            rows = _selected(rows, total / max(len(rows.count), 1))
            promises = window_promises(promises, slide_s=gate.slide_s, from_s=gate.from_s)
        elif gate.makes == "on its time":
            rows = time_bound(times, selected, delay_s=gate.result_delay_s)
        else:
            rows = gathered(selected)
        if gate.delay_s:
            rows = waiting(rows, times, delay_s=gate.delay_s)
            promises = replace(promises, event_s=promises.event_s - gate.delay_s)
        inputs = range(len(operator.inputs))
        each = [self._worked(operator.name, n, rows).at_s for n in inputs]
        return Series(
            replace(rows, at_s=np.max(each, axis=0)),
            self._promised(operator.name, promises, len(operator.inputs)),
        )

    def _gate_of(self, gate: GatedOperator) -> GateTimes:
        if gate.gate is None:
            return gate_times(
                [self._came(feeder, gate.name) for feeder, _ in gate.feeds], gate.rule
            )
        # A replica's rows arrive as the shared gate, another stage, has read them.
        shared = self.done.gates[gate.gate]
        hop_s = self._travels_s(gate.gate, gate.name)
        promises = delayed(self.done.leaves[gate.gate].promises, hop_s)
        inputs = [
            Series(delayed_rows(self._worked(gate.gate, 0, rows), hop_s), promises)
            for rows in self.done.released[gate.gate]
        ]
        return GateTimes(inputs, [came.rows.at_s for came in inputs], promises, shared.rule)


def _selected(rows: Rows, share: float) -> Rows:
    return replace(rows, count=rows.count * share)


def _of_port(worked: Sequence[Rows], ports: Sequence[int], port: int) -> Rows:
    return gathered([rows for rows, of in zip(worked, ports, strict=True) if of == port])


def _shared_out(
    took_s: FloatArray,
    width_s: float,
    left_s: FloatArray,
    event_s: FloatArray,
    count: FloatArray,
) -> FloatArray:
    """Return the time of each row, by the time of each subinterval's last row; (k,).

    If work is left at the end of a subinterval, its rows are done one after the other, in the order
    in which they left; of rows released together the oldest is first.
    """
    known = np.isfinite(left_s)
    left_s = np.where(known, left_s, 0.0)
    done_s = np.arange(1, len(took_s) + 1) * width_s + took_s
    cell = np.floor(left_s / width_s + 1e-9).astype(np.int64).clip(max=len(took_s) - 1)
    begun_s = np.maximum(np.append(0.0, done_s[:-1])[cell], cell * width_s)
    order = np.lexsort((event_s, left_s))
    weights = np.where(known, np.maximum(count, 1e-12), 0.0)[order]
    total = np.concatenate([[0.0], np.cumsum(weights)])
    starts = np.searchsorted(cell[order], cell[order], side="left")
    ends = np.searchsorted(cell[order], cell[order], side="right")
    part = np.empty(len(order))
    part[order] = (total[1:] - total[starts]) / np.maximum(total[ends] - total[starts], 1e-300)
    queued_s = begun_s + part * (done_s[cell] - begun_s) - left_s
    calm_s = np.interp(left_s, np.arange(1, len(took_s) + 1) * width_s, took_s)
    each_s = np.where(took_s[cell] > 0, queued_s, calm_s)
    return np.where(known, np.maximum(each_s, 0.0), 0.0)

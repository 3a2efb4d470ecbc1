"""Latency over the paths of a flow. Source: [ssg] Eq. 2.

```
buses ─┐
       gate 1 ── gate 2 ── out       latency = max over paths of the sum of latency_op and comm
loops ─┘         │
late  ───────────┘
```
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model.subject import Subject


@dataclass(frozen=True)
class Paths:
    """Paths of a flow: its steps, and the inputs of each.

    Attributes:
        inputs: {step: the steps that feed it}, in topological order.
        tuned: steps whose slack is tuned, in topological order.
    """

    inputs: Mapping[Subject, tuple[Subject, ...]]
    tuned: tuple[Subject, ...]

    @classmethod
    def of(cls, graph: FlowGraph) -> Paths:
        """Return the paths of a flow."""
        return cls(graph.inputs, graph.tuned)

    def gates_downstream(self, step: Subject) -> int:
        """Return the most tuned gates on a path downstream of a step, without itself."""
        gates_after = dict.fromkeys(self.inputs, 0)
        for target, feeds in reversed(list(self.inputs.items())):
            for feed in feeds:
                gates_after[feed] = max(
                    gates_after[feed], gates_after[target] + (target in self.tuned)
                )
        return gates_after[step]

    def latency_ns(self, op_ns: Mapping[Subject, float]) -> float:
        """Return the largest sum over the paths. Source: [ssg] Eq. 2.

        Args:
            op_ns: {step: latency_op plus comm to it}; a missing step counts 0.
        """
        so_far: dict[Subject, float] = {}
        for step, feeds in self.inputs.items():
            before = max((so_far[feed] for feed in feeds), default=0.0)
            so_far[step] = before + op_ns.get(step, 0.0)
        return max(so_far.values(), default=0.0)

    def latency_through_ns(self, step: Subject, op_ns: Mapping[Subject, float]) -> float:
        """Return the largest sum over the paths through a step."""
        ahead: dict[Subject, float] = {}
        through: dict[Subject, float] = {}  # {step: the same, of paths through `step`}
        for target, feeds in self.inputs.items():
            own_ns = op_ns.get(target, 0.0)
            ahead[target] = max((ahead[feed] for feed in feeds), default=0.0) + own_ns
            if target == step:
                through[target] = ahead[target]
            elif been := [through[feed] for feed in feeds if feed in through]:
                through[target] = max(been) + own_ns
        return max(through.values())

    def careful_latency_ns(
        self,
        op_ns: Mapping[Subject, float],
        deviation_ns: Mapping[Subject, float],
        *,
        deviations: float,
    ) -> float:
        """Return the latency with a margin: mean + `deviations` standard deviations of a path.

        Deviations of steps are assumed to be independent, so variances add up along a path. Which
        path is the worst one can depend on later steps: all paths that may be the worst are kept.
        """
        so_far: dict[Subject, list[tuple[float, float]]] = {}  # (mean, variance) of paths to a step
        worst_ns = 0.0
        for step, feeds in self.inputs.items():
            own_ns, own = op_ns.get(step, 0.0), deviation_ns.get(step, 0.0) ** 2
            before = _not_dominated([way for feed in feeds for way in so_far[feed]] or [(0.0, 0.0)])
            so_far[step] = [(mean + own_ns, variance + own) for mean, variance in before]
            margins = (mean + deviations * math.sqrt(both) for mean, both in so_far[step])
            worst_ns = max(worst_ns, *margins)
        return worst_ns

    def even_split_ns(self, op_ns: Mapping[Subject, float], deadline_ns: int) -> dict[Subject, int]:
        """Return {tuned step: share of the deadline}, less the rest, split evenly.

        For each path: (deadline − time of its other steps) / number of its gates; the least over
        the paths through a gate counts. Never below 0.

        Args:
            op_ns: {step: latency_op plus comm to it}; times of tuned gates do not count.
            deadline_ns: deadline of the flow.
        """
        rest = {s: 0.0 if s in self.tuned else op_ns.get(s, 0.0) for s in self.inputs}
        feeds_of: dict[Subject, list[Subject]] = {step: [] for step in self.inputs}
        for step, feeds in self.inputs.items():
            for feed in feeds:
                feeds_of[feed].append(step)
        # {step: {gates on the way: the largest rest}}, from the sources to it and from it on
        upstream = _tables(self.inputs, self.inputs, rest, self.tuned)
        downstream = _tables(dict(reversed(list(self.inputs.items()))), feeds_of, rest, self.tuned)
        shares: dict[Subject, int] = {}
        for gate in self.tuned:
            share = min(
                (deadline_ns - up_ns - down_ns) / (gates_up + gates_down - 1)  # the gate is in both
                for gates_up, up_ns in upstream[gate].items()
                for gates_down, down_ns in downstream[gate].items()
            )
            shares[gate] = max(int(share), 0)
        return shares


def _not_dominated(ways: list[tuple[float, float]]) -> list[tuple[float, float]]:
    front: list[tuple[float, float]] = []
    for mean, variance in sorted(ways, reverse=True):
        if not front or variance > front[-1][1]:
            front.append((mean, variance))
    return front


def measured_ns(samples: Mapping[Subject, StageSample]) -> dict[Subject, float]:
    """Return {step: latency_op plus comm to it} of one second."""
    return {step: float(sample.took_ns) for step, sample in samples.items()}


def _tables(
    steps: Mapping[Subject, object],
    before: Mapping[Subject, tuple[Subject, ...]] | Mapping[Subject, list[Subject]],
    rest: Mapping[Subject, float],
    gates: tuple[Subject, ...],
) -> dict[Subject, dict[int, float]]:
    tables: dict[Subject, dict[int, float]] = {}
    for step in steps:
        table: dict[int, float] = {} if before[step] else {0: 0.0}
        for feed in before[step]:
            for count, so_far in tables[feed].items():
                table[count] = max(table.get(count, 0.0), so_far)
        own = int(step in gates)
        tables[step] = {count + own: so_far + rest[step] for count, so_far in table.items()}
    return tables

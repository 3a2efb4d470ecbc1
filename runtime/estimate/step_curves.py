"""Curves of a flow's joins and windows, step by step, to be carried over to other plans of it.

```
pairs.gate ─┬─ pairs.1   curve ─┐
            └─ pairs.2   curve ─┴─▶ pairs: all of them, and what a row costs the gate
```

A filter that goes before a join takes its share of one side, and so of the pairs in reach; what
comes of a pair stays. One that goes before a window goes by its keys, and takes its share of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from runtime.estimate.curves import WindowCurve
from runtime.estimate.query_graph import CostCurve, FloatArray, QueryGraph
from runtime.plan.plan import Stage

__all__ = ["of_fewer_keys", "step_curves"]


@dataclass(frozen=True)
class _Replicas:
    """All replicas of a step, and their gate.

    Attributes:
        each: the replicas' curves.
        gate_s: CPU seconds of a row at the gate.
    """

    each: tuple[CostCurve, ...]
    gate_s: float

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        own = np.sum([one.load_s(arrivals, width_s) for one in self.each], axis=0)
        return np.asarray(own + self.gate_s * arrivals.sum(axis=0))

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        return np.asarray(np.sum([one.events_out(arrivals, width_s) for one in self.each], axis=0))

    def at_speed(self, speed: float) -> CostCurve:
        return replace(self, each=tuple(one.at_speed(speed) for one in self.each))


def step_curves(stages: Sequence[Stage], graph: QueryGraph) -> dict[str, CostCurve]:
    """Return {step: its curve}, of the steps that have one.

    Args:
        stages: of a plan in which each step is a stage, or a gate and its replicas.
        graph: of a sample of it.
    """
    known = {one.name: one for one in graph.operators}
    found: dict[str, CostCurve] = {}
    for stage in stages:
        curve = known[stage.name].curve
        if curve is not None and stage.part == "whole":
            found[stage.origin] = curve
    for gate in (stage for stage in stages if stage.part == "gate"):
        own = [one for one in stages if one.origin == gate.origin and one.part == "replica"]
        curves = [curve for one in own if (curve := known[one.name].curve) is not None]
        if curves:
            found[gate.origin] = _Replicas(tuple(curves), known[gate.name].cost_s[0])
    return found


def of_fewer_keys(curve: CostCurve, share: float) -> CostCurve:
    """Return a curve where a filter lets only a share of the keys through, > 0."""
    if isinstance(curve, _Replicas):
        return replace(curve, each=tuple(of_fewer_keys(one, share) for one in curve.each))
    if isinstance(curve, WindowCurve):
        return replace(curve, keys=curve.keys * share)
    return curve

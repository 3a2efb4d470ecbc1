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

from slackwater.runtime.foresight.curves import JoinCurve, WindowCurve
from slackwater.runtime.foresight.query_graph import CostCurve, FloatArray, QueryGraph
from slackwater.runtime.plan.plan import Stage

__all__ = ["of_fewer_keys", "step_curves"]


@dataclass(frozen=True)
class _Replicas:
    """All replicas of a step, and their gate.

    Attributes:
        each: the replicas' curves, of what leaves the gate: they were fitted to that.
        gate_s: CPU seconds of a row at the gate.
        passed: of the rows that come there, those that leave it; late ones do not.
    """

    each: tuple[CostCurve, ...]
    gate_s: float
    passed: float

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        dealt = self._dealt(arrivals)
        own = np.sum([one.load_s(dealt, width_s) for one in self.each], axis=0)
        return np.asarray(own + self.gate_s * arrivals.sum(axis=0))

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        dealt = self._dealt(arrivals)
        return np.asarray(np.sum([one.events_out(dealt, width_s) for one in self.each], axis=0))

    def _dealt(self, arrivals: FloatArray) -> FloatArray:
        """Return what leaves the gate, all sides in one, shape (1, d)."""
        return np.asarray(self.passed * arrivals.sum(axis=0, keepdims=True))

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
            found[stage.origin] = _of_inputs(curve, stage)
    for gate in (stage for stage in stages if stage.part == "gate"):
        own = [one for one in stages if one.origin == gate.origin and one.part == "replica"]
        curves = [curve for one in own if (curve := known[one.name].curve) is not None]
        if curves:
            here, once = known[gate.name], _once(gate)
            found[gate.origin] = _Replicas(
                tuple(curves), here.cost_s[0] * once, here.selectivity[0] * once
            )
    return found


def _of_inputs(curve: CostCurve, stage: Stage) -> CostCurve:
    """Return a curve of the step's inputs: to the stage one that feeds both sides is one input."""
    if isinstance(curve, JoinCurve):
        return replace(curve, share=curve.share * _once(stage))
    return curve


def _once(stage: Stage) -> float:
    """Return how many stages feed one, for each of its step's inputs."""
    feeders = [channel.source for channel in stage.inputs]
    return len(set(feeders)) / len(feeders) if feeders else 1.0


def of_fewer_keys(curve: CostCurve, share: float) -> CostCurve:
    """Return a curve where a filter lets only a share of the keys through, > 0."""
    if isinstance(curve, _Replicas):
        return replace(curve, each=tuple(of_fewer_keys(one, share) for one in curve.each))
    if isinstance(curve, WindowCurve):
        return replace(curve, keys=curve.keys * share)
    return curve

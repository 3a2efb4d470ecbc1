"""Curves of a flow's joins and windows by step, to carry over to other plans.

```
pairs.gate ─┬─ pairs.1   curve ─┐
            └─ pairs.2   curve ─┴─▶ pairs: all replicas, and the gate's cost of a row
counts     curve ────────────────▶ counts, whatever replicas with a gate of their own
```

A filter before a join keeps its share of one side, and so of the pairs in reach; the results of a
pair stay. A filter before a window reads its keys, and keeps its share of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.foresight.curves import JoinCurve, WindowCurve
from slackwater.runtime.foresight.query_graph import CostCurve, FloatArray, QueryGraph
from slackwater.runtime.model.subject import GATE
from slackwater.runtime.plan.parts import parts_of
from slackwater.runtime.plan.plan import Stage

__all__ = ["of_fewer_keys", "step_curves"]


@dataclass(frozen=True)
class _Replicas:
    """Curve of all replicas of a step and the gate that they share.

    Attributes:
        each: the replicas' curves, fitted to the rows that leave the gate.
        gate_s: CPU seconds of a row at the gate.
        passed: share of the gate's rows that leave it; late rows do not.
    """

    each: tuple[CostCurve, ...]
    gate_s: float
    passed: float

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        dealt = self._dealt(arrivals)
        own = np.sum([curve.load_s(dealt, width_s) for curve in self.each], axis=0)
        return np.asarray(own + self.gate_s * arrivals.sum(axis=0))

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        dealt = self._dealt(arrivals)
        return np.asarray(np.sum([curve.events_out(dealt, width_s) for curve in self.each], axis=0))

    def _dealt(self, arrivals: FloatArray) -> FloatArray:
        # All sides are one input of the replicas: shape (1, d).
        return np.asarray(self.passed * arrivals.sum(axis=0, keepdims=True))

    def at_speed(self, speed: float) -> CostCurve:
        return replace(self, each=tuple(curve.at_speed(speed) for curve in self.each))


def step_curves(stages: Sequence[Stage], graph: QueryGraph) -> dict[str, CostCurve]:
    """Return {step: its curve}, of the steps that have a curve.

    Args:
        stages: stages of a plan in which each step is a stage, or replicas, perhaps after a gate.
        graph: query graph of a sample of that plan, with steps whose stages are equal parts.
    """
    known = {operator.name: operator for operator in graph.operators}
    curves_by_step: dict[str, CostCurve] = {}
    for stage in {stage.whole: stage for stage in stages}.values():
        curve = known[stage.whole].curve
        if curve is not None and not stage.shares_gate and stage.subject.part != GATE:
            curves_by_step[stage.whole] = _of_inputs(curve, stage)
    for gate in (stage for stage in stages if stage.subject.part == GATE):
        replicas = [part for part in parts_of(gate.subject.whole, stages) if part is not gate]
        curves = [curve for each in replicas if (curve := known[each.name].curve) is not None]
        if curves:
            here, once = known[gate.name], _once(gate)
            curves_by_step[gate.subject.step] = _Replicas(
                tuple(curves), here.cost_s[0] * once, here.selectivity[0] * once
            )
    return curves_by_step


def _of_inputs(curve: CostCurve, stage: Stage) -> CostCurve:
    # A stage that feeds both sides of a join is one input of the curve, and two of the step.
    if isinstance(curve, JoinCurve):
        return replace(curve, share=curve.share * _once(stage))
    return curve


def _once(stage: Stage) -> float:
    """Return the number of stages that feed a stage, for each of its step's inputs."""
    feeders = [channel.source for channel in stage.inputs]
    return len(set(feeders)) / len(feeders) if feeders else 1.0


def of_fewer_keys(curve: CostCurve, share: float) -> CostCurve:
    """Return a curve for the share of the keys, > 0, that a filter keeps."""
    if isinstance(curve, _Replicas):
        return replace(curve, each=tuple(of_fewer_keys(each, share) for each in curve.each))
    if isinstance(curve, WindowCurve):
        return replace(curve, keys=curve.keys * share)
    return curve

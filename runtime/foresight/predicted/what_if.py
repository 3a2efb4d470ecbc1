"""Assumptions of a prediction beside its sample: other costs, other links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight import QueryGraph
from slackwater.runtime.foresight.curves import WindowCurve
from slackwater.runtime.foresight.latency_estimate import NodeEstimate
from slackwater.runtime.foresight.layout import Network, Way
from slackwater.runtime.foresight.links import CROSSES
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.query_graph import CostCurve, FloatArray, QueryOperator
from slackwater.runtime.model import NS_PER_SECOND, Duration, duration_ns
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.simulate import LinkModel

__all__ = ["costing", "link_relief", "network_of", "with_costs"]


def network_of(model: LinkModel, sample: FlowSample) -> Network:
    """Return the network of a model of links, with the bytes of a sample's rows."""
    between = {ends: _way(own) for ends, own in model.between.items()}
    return Network(usual=_way(model), between=between, row_bytes=sample.row_bytes)


def _way(link: LinkModel) -> Way:
    return Way(
        least_s=link.delay_ns / NS_PER_SECOND,
        most_s=(link.delay_ns + link.jitter_ns) / NS_PER_SECOND,
        bytes_per_s=link.bytes_per_s,
    )


def link_relief(plan: Plan, link: NodeEstimate) -> str:
    """Return the advice that relieves a link, the bottleneck."""
    crossing = link.operators[0]
    feeder, _, target = crossing.partition(CROSSES)
    here, there = (plan.places[plan.slots[name]].node for name in (feeder, target))
    return (
        f"{crossing} takes {link.load:.2f} of what the link carries: place {target} on "
        f"{here} or {feeder} on {there}, send less (filter or select before {target}), or a faster "
        "link"
    )


def with_costs(
    sample: FlowSample, costs: Mapping[str, Duration], stages: Sequence[Stage] = ()
) -> FlowSample:
    """Return a sample with other costs of some stages.

    Args:
        sample: sample of the flow, divided for the stages if they are given.
        costs: {stage, or step for all its parts: time of its row on a core, "2ms" or seconds}.
        stages: stages of a plan of the flow.

    Raises:
        SettingError: there is no stage of that name, or a cost is not above 0.
    """
    known = sample.graph.names
    cost_s: dict[str, float] = {}
    for name, cost in costs.items():
        row_s = _cost_s(name, cost, [*known, *(stage.whole for stage in stages)])
        own = [name] if name in known else [s.name for s in stages if s.whole == name]
        cost_s |= {part: row_s for part in own if part not in costs or part == name}
    operators = [
        costing(each, cost_s[each.name], share=sample.shares.get(each.name, 1.0))
        if each.name in cost_s
        else each
        for each in sample.graph.operators
    ]
    return replace(sample, graph=QueryGraph(sample.graph.sources, tuple(operators)))


def costing(operator: QueryOperator, row_s: float, *, share: float = 1.0) -> QueryOperator:
    """Return an operator with another cost of a row, whatever its results.

    Args:
        operator: the operator of the sample.
        row_s: cost of a row, seconds on a core.
        share: share of its inputs' output rows that reach it.
    """
    is_window = isinstance(operator.curve, WindowCurve)
    cost_s = row_s * share
    return replace(
        operator,
        cost_s=(cost_s,) * len(operator.inputs),
        curve=None if operator.curve is None else _Costing(operator.curve, cost_s),
        # The row that closes a window is not in it.
        alone_s=min(operator.alone_s, row_s) if is_window else row_s,
    )


@dataclass(frozen=True)
class _Costing:
    """Curve with a constant cost of each row."""

    curve: CostCurve
    cost_s: float

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        del width_s
        return np.asarray(self.cost_s * arrivals.sum(axis=0))

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        return self.curve.events_out(arrivals, width_s)

    def at_speed(self, speed: float) -> CostCurve:
        return _Costing(self.curve.at_speed(speed), self.cost_s)


def _cost_s(name: str, cost: Duration, known: Sequence[str]) -> float:
    if name not in known:
        raise SettingError(
            f"a cost is given for {name!r}, which is not a stage; the stages are "
            f"{', '.join(dict.fromkeys(known))} (what is fused to a stage is a part of its cost)"
        )
    if isinstance(cost, (int, float)):  # seconds, which may be finer than a nanosecond
        row_s = float(cost)
    else:
        row_s = duration_ns(cost, what=f"cost of {name!r}") / NS_PER_SECOND
    if not 0 < row_s < float("inf"):
        raise SettingError(
            f"stage {name!r} is given a cost of {cost!r} for each row; all work takes some time: "
            "give more than 0, or leave it out for what the sample measured"
        )
    return row_s

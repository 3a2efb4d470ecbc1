"""Choice among plans with the same results, by latency: [mace] §IX-A.

```
flow ─▶ filters split ─▶ one sample, each step a stage ─▶ branch and bound on Mace ─▶ a few plans
                                                                                         │
             written, and each of these, sampled as it would run, placed, predicted ◀────┘
```
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Unpack

from slackwater.runtime.config import Limits
from slackwater.runtime.errors import FlowError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.foresight import CostCurve, Workload
from slackwater.runtime.foresight.carried import StepStatistics, carried
from slackwater.runtime.foresight.excess import cumulative_excess
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.observed.parts import as_sampled
from slackwater.runtime.foresight.observed.sampling import HERE
from slackwater.runtime.foresight.predicted.asked import Ahead
from slackwater.runtime.foresight.predicted.predicting import series_ahead, speed_of, subintervals
from slackwater.runtime.foresight.predicted.prediction import Prediction, worst_text
from slackwater.runtime.foresight.query_graph import FloatArray, arrivals_of
from slackwater.runtime.foresight.rates import Rate
from slackwater.runtime.foresight.step_curves import step_curves
from slackwater.runtime.json_form import JsonView, View
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.step import filters_among
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.rewrite.moves import FlowPlan, split_all
from slackwater.runtime.rewrite.search import Cost, Price, SearchResult, far_up, search_plans

__all__ = ["Considered", "PlanChoice", "Sampler", "choose_plan", "price_of"]


class Host(Protocol):
    """Host on which a flow will run: a `FlowHost`, which imports this module."""

    @property
    def slots(self) -> Sequence[object]:
        """Slots that the host offers."""
        ...

    def predict(
        self,
        flow: Dataflow,
        rates: Mapping[str, Rate] | Rate,
        *,
        sample: FlowSample,
        **ahead: Unpack[Ahead],
    ) -> Prediction:
        """See `FlowHost.predict`."""
        ...


GAIN = 0.1
"""Least relative gain over the written plan, for a rewritten one to be chosen: a sample shows costs
to some ten per cent."""
Sampler = Callable[[Dataflow, Limits], FlowSample]


@dataclass(frozen=True, eq=False)
class Considered(JsonView):
    """Plan that was considered.

    Attributes:
        rewrites: rewrites that make it of the flow as written; empty: it is that flow.
        flow: the flow to submit.
        prediction: its prediction, with its placement.
    """

    rewrites: tuple[str, ...]
    flow: Dataflow
    prediction: Prediction

    JSON: ClassVar[View] = {
        "rewrites": "rewrites",
        "worst_s": "worst_s",
        "cores": "cores",
        "placement": "prediction.plan.slots",
    }

    @property
    def worst_s(self) -> float:
        """Predicted worst latency; inf: it grows without bound, or a gate holds rows."""
        return self.prediction.compared_s

    @property
    def cores(self) -> float:
        """CPU seconds a second of all its stages together."""
        return sum(self.prediction.cores_by.values())

    @property
    def is_written(self) -> bool:
        """Whether the plan is the flow as its user wrote it."""
        return not self.rewrites


@dataclass(frozen=True, eq=False)
class PlanChoice(JsonView):
    """Choice among the predicted plans of a flow.

    Attributes:
        considered: the flow as written, then the best rewritten ones that a search found.
        found: the result of the search; None if the flow has no filter that may move.
    """

    considered: tuple[Considered, ...]
    found: SearchResult | None

    JSON: ClassVar[View] = {
        "chosen": "chosen.rewrites",
        "considered": "considered",
        "is_whole": lambda choice: choice.found is None or choice.found.is_whole,
    }

    @property
    def written(self) -> Considered:
        """Plan of the flow as its user wrote it."""
        return self.considered[0]

    @property
    def chosen(self) -> Considered:
        """Plan with the least worst latency; without a backlog, with the least work.

        It is the written one, unless another is better by a tenth.
        """
        best = min(self.considered, key=_rank)
        for written, least in zip(_rank(self.written), _rank(best), strict=True):
            if written != least:
                return best if least < written * (1 - GAIN) else self.written
        return self.written

    def text(self) -> str:
        """Return the choice as text."""
        return "\n".join(_lines(self))


def choose_plan(
    host: Host,
    flow: Dataflow,
    rates: Mapping[str, Rate] | Rate,
    *,
    sample: Sampler,
    keep: int = 3,
    **ahead: Unpack[Ahead],
) -> PlanChoice:
    """Return the best plan of a flow on a host, with the same results.

    Only samples run. The search uses Mace on one node as strong as all slots together, by the
    statistics of one sample. The plans that it finds are sampled once more as they would run, and
    predicted with their placement. Source: [mace] §IX-A.

    Args:
        host: the host of the flow: a Cluster or a Simulation.
        flow: the flow as written.
        rates: rates of the sources, as for `FlowHost.predict`.
        sample: makes a sample of a flow with these limits.
        keep: number of rewritten plans to predict.
        ahead: `placement`, `limits`, `tuning`, `horizon`, `width`, `seed`, `speed` and `link`, as
            for `FlowHost.predict`. Plans without a stage that `placement` names are omitted.

    Raises:
        FlowError, SettingError: as for `FlowHost.predict`.
    """
    limits = ahead.get("limits") or Limits()

    def predicted(candidate: Dataflow) -> Prediction:
        return host.predict(candidate, rates, sample=sample(candidate, limits), **ahead)

    written = Considered((), flow, predicted(flow))
    if not filters_among(flow.steps.values()):
        return PlanChoice((written,), None)
    price = _price(host, flow, rates, sample, ahead)
    found = search_plans(FlowPlan(flow.graph), price, keep=keep + 1)
    considered = [written]
    for _, plan in found.plans:
        if plan.rewrites and len(considered) <= keep:
            other = flow.with_steps(plan.graph.steps.values())
            try:
                considered.append(Considered(plan.rewrites, other, predicted(other)))
            except FlowError:
                if not ahead.get("placement"):
                    raise  # else the plan lacks stages that the user placed
    return PlanChoice(tuple(considered), found)


def price_of(
    statistics: StepStatistics,
    arrivals: Mapping[str, FloatArray],
    *,
    width_s: float,
    capacity: float = 1.0,
    curves: Mapping[str, CostCurve] | None = None,
) -> Price:
    """Return the price of a plan: (Mace_WC on one node, CPU seconds). [mace] §IX-A.

    Args:
        statistics: statistics of the flow before rewrites.
        arrivals: {`arrivals_of(source)`: events in each subinterval}.
        width_s: w, length of a subinterval.
        capacity: capacity of the node, CPU seconds a second.
        curves: {step: its curve}, of nonlinear steps.
    """

    def price(plan: FlowPlan, free: Collection[str]) -> Cost:
        graph = carried(statistics, plan.graph.steps, plan.atoms, free=free, curves=curves)
        load_s = Workload.of(graph, arrivals, width_s).load_s.sum(axis=0)
        excess_s = cumulative_excess(load_s, capacity, width_s=width_s)
        return (round(float(excess_s.max()) / capacity, 9), round(float(load_s.sum()), 9))

    return price


def _price(
    host: Host,
    flow: Dataflow,
    rates: Mapping[str, Rate] | Rate,
    sampled: Sampler,
    ahead: Ahead,
) -> Price:
    """Return the price of plans of a flow, by statistics of one sample.

    The sample runs twice: as written, and with the filters where they see most rows.
    """
    base = split_all(FlowPlan(flow.graph))
    up = far_up(base)
    limits = ahead.get("limits") or Limits()
    sample, stages, statistics = _statistics(flow, base, sampled, limits)
    if up.rewrites != base.rewrites:
        *_, further = _statistics(flow, up, sampled, limits)
        statistics = statistics.with_filters_of(further, up.atoms)
    width_s, d = subintervals(ahead.get("horizon", "60s"), ahead.get("width", "100ms"))
    speed = ahead.get("speed")
    speed = speed_of(flow.steps.values()) if speed is None else speed
    graph = sample.graph.at_speed(speed)
    series = series_ahead(
        sample, rates, d=d, width_s=width_s, seed=ahead.get("seed", 0), speed=speed
    )
    arrivals = {arrivals_of(name): counts for name, counts in series.items()}
    return price_of(
        statistics,
        arrivals,
        width_s=width_s,
        capacity=float(len(host.slots)),
        curves=step_curves(stages, graph),
    )


def _statistics(
    flow: Dataflow, plan: FlowPlan, sampled: Sampler, limits: Limits
) -> tuple[FlowSample, Sequence[Stage], StepStatistics]:
    """Return a sample of a plan with a stage for each step, and its statistics."""
    apart = replace(limits, fuse=False)
    parted = flow.with_steps(plan.graph.steps.values())
    sample = sampled(parted, apart)
    stages = prepare(as_sampled(parted), [HERE], limits=apart).stages
    statistics = StepStatistics.of(
        plan.graph.steps, stages, sample.stages, slice_s=limits.slice_ns / NS_PER_SECOND
    )
    return sample, stages, statistics


def _rank(plan: Considered) -> tuple[float, float]:
    # Latency counts if rows wait longer than a subinterval; else only work does.
    counts = plan.prediction.has_backlog or plan.prediction.is_unbounded
    return (plan.worst_s if counts else 0.0, plan.cores)


def _lines(choice: PlanChoice) -> list[str]:
    chosen = choice.chosen
    if len(choice.considered) == 1:
        return ["plans       this one only: no filter may stand elsewhere"]
    lines = ["plans       worst latency and cores of each, the same results of each (*: the best):"]
    for plan in choice.considered:
        mark = "*" if plan is chosen else " "
        what = "as written" if plan.is_written else "; ".join(plan.rewrites)
        lines.append(f"  {mark} {worst_text(plan.worst_s):>14}  {plan.cores:>6.2f}  {what}")
    if not chosen.is_written:
        words = ", ".join(f'"{text}"' for text in chosen.rewrites)
        lines.append(f"to take it  submit(sw.rewritten(flow, {words}))")
    if choice.found is not None and not choice.found.is_whole:
        lines.append(f"            {choice.found.priced} plans were looked at, of more")
    return lines

"""What the latency of a flow will be, said before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from runtime.errors import SettingError
from runtime.estimate import LatencyEstimate, Workload, estimate_latency
from runtime.estimate.placement import PlacementProblem, SearchBudget, mace_hc
from runtime.estimate.query_graph import arrivals_of
from runtime.estimate.rates import Rate, series_of
from runtime.estimate.sampled import as_shares
from runtime.model import NS_PER_SECOND, READY_ONLY, Duration, duration_ns, format_ns
from runtime.plan.plan import Plan
from runtime.plan.step import GatedStep
from runtime.plan.steps import SourceStep
from slackwater.sampling import FlowSample

__all__ = ["Prediction", "better_of", "predict", "searched_placement"]

MOST_SUBINTERVALS = 100_000
SEARCH_MOVES = 20_000
"""Moves that a search for a placement may look at."""
SEARCH_GAIN = 0.01
"""A found placement has to be so much better than the simple rule's to be taken."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Prediction:
    """Latency as it is predicted for a plan.

    Attributes:
        plan: what was looked at.
        sample: what costs are known from.
        rates: {source: mean events a second}.
        estimate: latency over time, the nodes, the bottleneck.
        cores_by: {operator: CPU seconds a second that it takes}, all nodes alike.
        work: what there is to do, by subinterval.
        considered: {how stages were placed: the worst latency of that, seconds}.
    """

    plan: Plan
    sample: FlowSample
    rates: Mapping[str, float]
    estimate: LatencyEstimate
    cores_by: Mapping[str, float]
    work: Workload
    considered: Mapping[str, float] = field(default_factory=dict)

    @property
    def has_backlog(self) -> bool:
        """Whether anything ever waits for longer than a subinterval."""
        return self.estimate.is_unbounded or self.estimate.worst_s > self.work.width_s

    @property
    def keeps_deadline(self) -> bool | None:
        """Whether the worst latency stays under the flow's deadline; None: it has none."""
        deadline_ns = self.plan.deadline_ns
        if deadline_ns is None:
            return None
        return not self.estimate.is_unbounded and self.estimate.worst_s * 1e9 <= deadline_ns

    def text(self) -> str:
        """Return what a person reads."""
        return "\n".join(_lines(self))

    def to_json(self) -> dict[str, Any]:
        """Return plain values; times in seconds."""
        found = self.estimate
        lower, upper = found.bounds_s
        return {
            "flow": self.plan.flow,
            "placement": dict(self.plan.slots),
            "rates": dict(self.rates),
            "sample": {"rows": self.sample.rows, "took_s": round(self.sample.took_s, 3)},
            "unbounded": found.is_unbounded,
            "sustainable": None if np.isinf(found.sustainable) else found.sustainable,
            "latency": {
                "worst_s": found.worst_s,
                "p99_s": found.quantile_s(0.99),
                "mean_s": found.mean_s,
                "mace_s": found.mace_worst_s,
                "least_s": lower,
                "most_s": upper,
            },
            "keeps_deadline": self.keeps_deadline,
            "considered": {
                way: None if worst == float("inf") else worst
                for way, worst in self.considered.items()
            },
            "bottleneck": {
                "node": found.bottleneck.name,
                "stage": next(iter(found.bottleneck.operators), None),
            },
            "nodes": [
                {
                    "name": node.name,
                    "load": node.load,
                    "peak": node.peak,
                    "headroom": node.headroom,
                    "worst_s": node.worst_s,
                    "stages": list(node.operators),
                }
                for node in found.nodes
            ],
            "cost_s": {one.name: one.cost_s[0] for one in self.sample.graph.operators},
        }


def predict(  # noqa: PLR0913 - each by name
    plan: Plan,
    sample: FlowSample,
    rates: Mapping[str, Rate] | Rate,
    *,
    slots: Sequence[str] | None = None,
    horizon: Duration = "60s",
    width: Duration = "100ms",
    hop_s: float = 0.0,
    speed: float | None = None,
    seed: int = 0,
) -> Prediction:
    """Return what the latency of a plan will be. Nothing is run.

    Args:
        plan: every stage in a slot.
        sample: of the same flow.
        rates: {source: events a second, a model of them, or a trace}, or one for all together.
        slots: all there are; None: those of the plan.
        horizon: how long to look ahead.
        width: of a subinterval, w of [mace].
        hop_s: how long a message travels between two slots.
        speed: event time goes so many times faster than the clock: 1 of a stream that becomes
            denser as rates grow. None: that of the flow's sources, where all are paced alike; else
            a stream is as dense as its sample, and only comes faster.
        seed: of what models of rates draw.

    Raises:
        SettingError: a source without a rate, or a horizon of no subinterval, or of too many.
    """
    width_s = duration_ns(width, what="width", positive=True) / NS_PER_SECOND
    d = round(duration_ns(horizon, what="horizon") / NS_PER_SECOND / width_s)
    if not 1 <= d <= MOST_SUBINTERVALS:
        raise SettingError(
            f"horizon={horizon!r} is {d} subintervals of width={width!r}; take 1 to "
            f"{MOST_SUBINTERVALS:,} of them"
        )
    stages = {one.name for one in plan.stages}
    known = set(sample.graph.names)
    if stages != known:
        odd = sorted(stages ^ known)
        raise SettingError(
            f"the sample is of another version of flow {plan.flow!r}: they differ in "
            f"{', '.join(odd)}; take the sample anew, with the same limits"
        )
    series = series_of(rates, as_shares(sample.rows), d=d, width_s=width_s, seed=seed)
    arrivals = {arrivals_of(name): counts for name, counts in series.items()}
    graph = sample.graph.at_speed(_speed_of(plan) if speed is None else speed)
    work = Workload.of(graph, arrivals, width_s)
    names = list(dict.fromkeys([*(slots or ()), *plan.slot_names]))
    hops = {(a, b): hop_s for a in names for b in names if a != b}
    estimate = estimate_latency(graph, work, plan.slots, dict.fromkeys(names, 1.0), hop_s=hops)
    busy = work.load_s.sum(axis=1) / (d * width_s)
    return Prediction(
        plan=plan,
        sample=sample,
        rates={name: float(counts.sum() / (d * width_s)) for name, counts in series.items()},
        estimate=estimate,
        cores_by=dict(zip(sample.graph.names, map(float, busy), strict=True)),
        work=work,
    )


def _speed_of(plan: Plan) -> float | None:
    """Return how many times faster than the clock event time goes; None: nobody has said."""
    steps = [one.step for one in plan.stages if isinstance(one.step, SourceStep)]
    speeds = {step.source.speed for step in steps}
    return speeds.pop() if len(speeds) == 1 else None


def searched_placement(made: Prediction, slots: Sequence[str], *, seed: int = 0) -> dict[str, str]:
    """Return {stage: slot} with the least Mace_WC that Mace-HC finds; what was said by hand stays.

    Source: [mace] §IX-B, Fig. 11.
    """
    graph = made.sample.graph
    number = {name: j for j, name in enumerate(graph.names)}
    place = {slot: i for i, slot in enumerate(slots)}
    said = [name for name, by in made.plan.placed_by.items() if by == "placement"]
    problem = PlacementProblem(
        load_s=made.work.load_s,
        capacity=np.ones(len(slots)),
        width_s=made.work.width_s,
        pinned={number[name]: place[made.plan.slots[name]] for name in said},
        near=[
            (number[name], j)
            for j, one in enumerate(graph.operators)
            for name in one.inputs
            if name in number
        ],
    )
    found = mace_hc(problem, seed, budget=SearchBudget(moves=SEARCH_MOVES))
    return {name: slots[int(found.nodes[j])] for name, j in number.items()}


def better_of(rule: Prediction, search: Prediction) -> Prediction:
    """Return the one with the lower worst latency, the rule's where they are alike."""
    considered = {"simple rule": _worst_s(rule), "search": _worst_s(search)}
    least_s = considered["simple rule"] * (1 - SEARCH_GAIN)
    is_better = considered["search"] < least_s
    return replace(search if is_better else rule, considered=considered)


def _worst_s(made: Prediction) -> float:
    return float("inf") if made.estimate.is_unbounded else made.estimate.worst_s


def _lines(made: Prediction) -> list[str]:
    found, plan = made.estimate, made.plan
    lower, upper = found.bounds_s
    rows = sum(made.sample.rows.values())
    lines = [
        f"flow {plan.flow}: predicted from a sample of {rows:,} rows; nothing was run on the nodes",
        "rates       " + ", ".join(f"{name} {rate:,.0f}/s" for name, rate in made.rates.items()),
    ]
    if found.is_unbounded:
        span_s = len(found.mace_s) * found.width_s
        lines.append(
            f"latency     {found.bottleneck.name} falls behind: over these {span_s:g} s it has "
            f"{found.bottleneck.load:.0%} of what it can do. Worst {_time(found.worst_s)} by then, "
            f"and more as long as the rates stay; {found.sustainable:.2f} times these it could do"
        )
    else:
        lines.append(
            f"latency     worst {_time(found.worst_s)} (between {_time(lower)} and "
            f"{_time(upper)}), p99 {_time(found.quantile_s(0.99))}, mean {_time(found.mean_s)}; "
            f"Mace {_time(found.mace_worst_s)}"
        )
    if made.considered:
        each = ", ".join(f"{way} {_worst(worst)}" for way, worst in made.considered.items())
        lines.append(f"placements  worst latency of each considered: {each}")
    unseen = [one.name for one in made.sample.graph.operators if not any(one.cost_s)]
    if unseen:
        lines.append(f"not seen    in the sample, and taken to cost nothing: {', '.join(unseen)}")
    lines += _gates(plan)
    if made.keeps_deadline is not None and plan.deadline_ns is not None:
        word = "is kept" if made.keeps_deadline else "is not kept"
        word += " by queues and work; see gates" if any(s.is_gated for s in plan.stages) else ""
        lines.append(f"deadline    {format_ns(plan.deadline_ns)} {word}")
    lines += ["", *_table(found)]
    most = found.bottleneck
    heaviest = most.operators[0] if most.operators else next(iter(made.cores_by))
    lines += [
        "",
        f"bottleneck  {most.name}: {', '.join(most.operators) or 'nothing'}; "
        + (
            "" if np.isinf(found.sustainable) else f"it could do {found.sustainable:.2f} times this"
        ),
        f"relief      {heaviest} takes {made.cores_by[heaviest]:.2f} of a core: "
        + _relief(plan, heaviest, made.cores_by[heaviest], most.operators),
    ]
    return lines


def _gates(plan: Plan) -> list[str]:
    waits = []
    for stage in plan.stages:
        if not stage.is_gated:
            continue
        rule = stage.rule
        if rule == READY_ONLY:
            waits.append(f"{stage.name} until every source has promised")
        else:
            waits.append(f"{stage.name} {rule.text}")
    return [f"gates       hold rows back on top of that: {'; '.join(waits)}"] if waits else []


def _table(found: LatencyEstimate) -> list[str]:
    width = max(len("slot"), *(len(node.name) for node in found.nodes))
    lines = [
        f"{node.name:<{width}}  {node.load:>5.0%}  {node.peak:>5.0%}   {node.headroom:>8.0%}   "
        f"{_time(node.worst_s):>14}   {', '.join(node.operators)}".rstrip()
        for node in found.nodes
    ]
    return [f"{'slot':<{width}}   load   peak   headroom   behind at most   runs", *lines]


def _relief(plan: Plan, heaviest: str, cores: float, beside: Sequence[str]) -> str:
    others = [name for name in beside if name != heaviest]
    if others and cores < 1 and plan.offered > 1:
        return f"place it apart from {', '.join(others)}"
    (stage,) = (one for one in plan.stages if one.name == heaviest)
    if stage.replica is not None or (isinstance(stage.step, GatedStep) and stage.step.span_ns):
        now = sum(one.origin == stage.origin and one.replica is not None for one in plan.stages)
        return f"give it replicas (replicas={max(now + 1, 2, round(cores + 1))})"
    return "it cannot be divided; a faster core, or less work for each event"


def _worst(seconds: float) -> str:
    return "without bound" if seconds == float("inf") else _time(seconds)


def _time(seconds: float) -> str:
    return format_ns(round(seconds * 1e9)) if seconds < 1 else f"{seconds:.2f} s"

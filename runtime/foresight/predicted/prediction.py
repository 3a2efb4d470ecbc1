"""Prediction of a flow's latency, before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight import LatencyEstimate, QueryGraph, Workload
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.predicted.coverage import (
    SupportedRange,
    covered_lines,
    not_held,
    off_estimates,
    supported_range,
    uncounted,
    uncounted_text,
    widened_s,
)
from slackwater.runtime.foresight.predicted.fits import divided, why_it_does_not_fit
from slackwater.runtime.foresight.predicted.gate_waits import GatePart, gate_lines, relief_by_slack
from slackwater.runtime.foresight.predicted.outlook import Outlook
from slackwater.runtime.foresight.predicted.replica_worth import ReplicaTable
from slackwater.runtime.foresight.predicted.shed_outlook import ShedOutlook, shed_lines
from slackwater.runtime.foresight.predicted.shedding_ahead import shed_outlooks
from slackwater.runtime.foresight.predicted.what_if import link_relief
from slackwater.runtime.foresight.query_graph import FloatArray, arrivals_of
from slackwater.runtime.foresight.shared_cores import SharedCores
from slackwater.runtime.foresight.sustainable import sustainable
from slackwater.runtime.json_form import JsonView, View
from slackwater.runtime.model import NS_PER_SECOND, format_ns, format_s
from slackwater.runtime.notebook import fixed_width
from slackwater.runtime.plan.expected import ExpectedLatency, RateRange
from slackwater.runtime.plan.plan import Plan

__all__ = ["Prediction", "Verdict", "worst_text"]

Verdict = Literal["kept", "may be missed", "not kept"]

BACKLOG_S = 0.1
"""Wait above which work is a backlog, however long subintervals are."""
RATE_S = 10.0
"""Length of the averages that show how rates vary."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Prediction(JsonView):
    """Predicted latency of a plan.

    Attributes:
        plan: the plan.
        sample: the sample that shows costs.
        graph: the sample's graph at the speed of event time.
        outlook: the outlook of the flow, wherever stages are.
        rates: {source: mean events a second}.
        estimate: latency over time, the nodes, the bottleneck.
        cores_by: {operator: CPU seconds a second that it takes}, all nodes alike.
        work: work by subinterval.
        gates: waits in gates, included in `estimate`; None if nothing waits.
        considered: {way of placement: its worst latency, seconds}.
        alone: the estimate with a core for each slot.
        beside: flows on the same cores without a prediction.
        breaks: deadlines of running flows that it would break, in words.
        is_trace: whether rates are counted events, which end; else they may last for ever.
        replicas: worth of other numbers of replicas; None if none was asked for.
    """

    plan: Plan
    sample: FlowSample
    graph: QueryGraph
    outlook: Outlook
    rates: Mapping[str, float]
    estimate: LatencyEstimate
    alone: LatencyEstimate
    cores_by: Mapping[str, float]
    work: Workload
    gates: GatePart | None = None
    considered: Mapping[str, float] = field(default_factory=dict)
    breaks: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    is_trace: bool = False
    replicas: ReplicaTable | None = None

    JSON: ClassVar[View] = {
        "flow": "plan.flow",
        "placement": "plan.slots",
        "rates": "rates",
        "sample": "sample",
        "history": lambda made: made.sample.origin or None,
        "unbounded": "is_unbounded",
        "too_much": "too_much",
        "sustainable": "sustainable",
        "latency": {
            "worst_s": "estimate.worst_s",
            "p99_s": lambda made: made.estimate.quantile_s(0.99),
            "mean_s": "estimate.mean_s",
            "mace_s": "estimate.mace_worst_s",
            "least_s": lambda made: made.bounds_s[0],
            "most_s": lambda made: made.bounds_s[1],
            "range_s": "supported.range_s",
            "no_range": lambda made: made.supported.why or None,
        },
        "gates": "gates",
        "shedding": "shedding",
        "keeps_deadline": "keeps_deadline",
        "verdict": "verdict",
        "considered": "considered",
        "replicas": "replicas",
        "bottleneck": {
            "node": "estimate.bottleneck.name",
            "stage": lambda made: next(iter(made.estimate.bottleneck.operators), None),
        },
        "nodes": "estimate.nodes",
        "cost_s": lambda made: {each.name: each.cost_s[0] for each in made.sample.graph.operators},
    }
    """Times are in seconds."""

    @property
    def worst_s(self) -> float:
        """Worst latency of any result within the horizon."""
        return self.estimate.worst_s

    @cached_property
    def bounds_s(self) -> tuple[float, float]:
        """Bounds of the worst latency, seconds; inf: no upper one is known."""
        least_s, most_s = widened_s([self.estimate, *self._off])
        return least_s, float("inf") if self.uncounted else most_s

    @cached_property
    def supported(self) -> SupportedRange:
        """Range of the worst latency that the sample supports, or the reason for none."""
        if self.uncounted:
            return SupportedRange(why="upper bound not known: rows wait for their order")
        return supported_range(self.estimate, self._off, self.sample)

    @cached_property
    def _off(self) -> list[LatencyEstimate]:
        return off_estimates(self.plan, self.sample, self.graph, self.outlook)

    @property
    def uncounted(self) -> tuple[str, ...]:
        """Sources that hold rows for their order, for an unknown time."""
        return uncounted(self.plan, self.sample)

    @property
    def machines(self) -> tuple[SharedCores, ...]:
        """Machines with fewer cores than slots in use; each is among the nodes, too."""
        names = {node.name for node in self.estimate.nodes}
        return tuple(machine for machine in self.outlook.machines if machine.name in names)

    @property
    def relief(self) -> str:
        """Advice that takes work off the bottleneck."""
        most = self.estimate.bottleneck
        if not self.has_backlog and most.load < 1 / 2:
            return "none is needed: no slot or link is busy for half of the time"
        heaviest = most.operators[0] if most.operators else next(iter(self.cores_by))
        if heaviest not in self.cores_by:
            return link_relief(self.plan, most)
        if machine := next((each for each in self.machines if each.name == most.name), None):
            taken = machine.taken
            others = f"; flows that run there already take {taken:.2f} cores" if taken else ""
            return f"more cores for {most.name}, or more machines{others}"
        cores = self.cores_by[heaviest]
        return f"{heaviest} takes {cores:.2f} of a core: " + _relief(
            self.plan, heaviest, cores, most.operators
        )

    @cached_property
    def sustainable(self) -> float:
        """Factor by which rates could rise before a node is overloaded; inf: any."""
        if not any(operator.curve for operator in self.graph.operators):
            return self.estimate.sustainable  # all is linear
        return sustainable(
            self.graph,
            self.outlook.arrivals,
            width_s=self.work.width_s,
            nodes=self.estimate.nodes,
            row_bytes=self.outlook.network.row_bytes,
        )

    @cached_property
    def shedding(self) -> tuple[ShedOutlook, ...]:
        """Outlook of stages that shed; all other figures are without drops."""
        return shed_outlooks(self)

    @property
    def keeps_by_dropping(self) -> bool:
        """Whether shedding steps keep their bounds, and so the flow its deadline."""
        limit_ns = self.plan.deadline_ns
        limit_s = float("inf") if limit_ns is None else limit_ns / NS_PER_SECOND
        left_s = max((each.course.worst_s for each in self.shedding if each.sheds), default=limit_s)
        return (
            all(each.helps for each in self.shedding) and bool(self.shedding) and left_s <= limit_s
        )

    @property
    def too_much(self) -> str | None:
        """Reason why it does not fit on its slots; None if it may."""
        return why_it_does_not_fit(
            self.plan,
            self.estimate,
            self.cores_by,
            machines=self.machines,
            is_searched=bool(self.considered),
        )

    @property
    def unseen(self) -> list[str]:
        """Stages without work in the sample."""
        return [each.name for each in self.sample.graph.operators if not any(each.cost_s)]

    @property
    def has_backlog(self) -> bool:
        """Whether work ever waits longer than a subinterval, or than `BACKLOG_S` if less."""
        estimate = self.estimate
        longest_s = max(estimate.behind_s, *(node.worst_s for node in estimate.nodes))
        return estimate.is_unbounded or longest_s > min(self.work.width_s, BACKLOG_S)

    @property
    def is_behind(self) -> bool:
        """Whether latency grows while the rates stay."""
        return self.estimate.is_unbounded and not self.is_trace

    @property
    def compared_s(self) -> float:
        """Worst latency by which placements and plans are compared.

        It is inf if latency grows without bound, or a gate holds rows longer than the time ahead.
        """
        estimate = self.estimate
        return float("inf") if self.is_behind or estimate.is_held else estimate.worst_s

    @property
    def is_unbounded(self) -> bool:
        """Whether latency grows for ever: a slot is overloaded, or a gate waits."""
        return self.estimate.lasting_worst_s == float("inf")

    @property
    def keeps_deadline(self) -> bool | None:
        """Verdict as a bool; None if there is no deadline, or it may be missed."""
        known: dict[Verdict | None, bool] = {"kept": True, "not kept": False}
        return known.get(self.verdict)

    @cached_property
    def verdict(self) -> Verdict | None:
        """Verdict on the flow's deadline; None if it has no deadline."""
        deadline_ns = self.plan.deadline_ns
        return None if deadline_ns is None else self.verdict_on(deadline_ns / NS_PER_SECOND)

    def verdict_on(self, deadline_s: float) -> Verdict:
        """Return the verdict on a deadline: kept, may be missed, or not kept."""
        if not self.keeps(deadline_s):
            return "not kept"
        return "kept" if self.bounds_s[1] <= deadline_s else "may be missed"

    @property
    def may_come_to(self) -> str:
        """Upper bound of the worst latency, in words."""
        most_s = self.bounds_s[1]
        return "no upper bound is known" if np.isinf(most_s) else f"up to {format_s(most_s)}"

    def keeps(self, deadline_s: float) -> bool:
        """Whether the estimated worst latency is within a deadline, while rates stay.

        Rates that are traces count only for their length.
        """
        return not self.is_behind and not self.estimate.is_held and self.worst_s <= deadline_s

    def check_is_of(self, plan: Plan) -> None:
        """Check that this is a prediction of these stages.

        Raises:
            SettingError: it is a prediction of others.
        """
        rules = {stage.name: (stage.rule, stage.is_tuned) for stage in self.plan.stages}
        others = [
            stage.name
            for stage in plan.stages
            if rules.get(stage.name) != (stage.rule, stage.is_tuned)
        ]
        odd = sorted({*self.sample.differs_from(plan), *others})
        if self.plan.deadline_ns != plan.deadline_ns:
            odd.append("its deadline")
        if odd:
            raise SettingError(
                f"the prediction is of another version of flow {plan.flow!r}: they differ in "
                f"{', '.join(odd)}; predict it again, with the same limits"
            )

    def check_is_there(self, plan: Plan) -> None:
        """Check that this is a prediction of stages in these slots.

        Raises:
            SettingError: its stages are in other slots.
        """
        moved = [name for name, slot in plan.slots.items() if self.plan.slots[name] != slot]
        if moved:
            raise SettingError(
                f"placement= moves {', '.join(moved)} away from where the prediction has it; "
                "predict it again with this placement, or omit placement="
            )

    def placed_text(self) -> str:
        """Return a text on how stages were placed, and from which observations."""
        by = set(self.plan.placed_by.values())
        way = "the simple rule" + (", as nothing better was found" if self.considered else "")
        if "search" in by or by == {"placement"}:
            way = "search" if "search" in by else "hand; predicted"
        origin = f"the history ({self.sample.origin})" if self.sample.origin else "a sample"
        return f"placed by {way}, from {origin}"

    def expected(self) -> ExpectedLatency:
        """Return the prediction for a comparison with the job."""
        estimate, per_s = self.estimate, 1 / self.work.width_s
        return ExpectedLatency(
            graph=self.graph,
            rates={
                name: _range(self.work.arrivals[arrivals_of(name)] * per_s, self.work.width_s)
                for name in self.outlook.series
            },
            width_s=self.work.width_s,
            latency_s=tuple(map(float, estimate.held_up_s)),
            gate_s=() if self.gates is None else tuple(map(float, self.gates.made.gate_s)),
            worst_s=self.worst_s,
            p99_s=estimate.quantile_s(0.99),
            mean_s=estimate.mean_s,
            is_unbounded=self.is_unbounded,
            machines=self.machines,
            network=self.outlook.network,
            shares=self.sample.shares,
            cores={
                node.name: node.load for node in estimate.nodes if node.name in self.plan.places
            },
        )

    def text(self) -> str:
        """Return the prediction as text."""
        return "\n".join(_lines(self))

    def _repr_html_(self) -> str:
        return fixed_width(self.text())


def _range(rates: FloatArray, width_s: float) -> RateRange:
    many = min(max(round(RATE_S / width_s), 1), len(rates))
    sums = np.concatenate([[0.0], np.cumsum(rates)])
    means = (sums[many:] - sums[:-many]) / many
    return RateRange(float(means.min()), float(rates.mean()), float(means.max()))


def _lines(made: Prediction) -> list[str]:
    estimate, plan = made.estimate, made.plan
    rows = f"{sum(made.sample.rows.values()):,} rows"
    origin = made.sample.origin
    known = f"the history ({origin}, {rows})" if origin else f"a sample of {rows}"
    lines = [
        f"flow {plan.flow}: predicted from {known}; nothing was run on the nodes",
        "rates       " + ", ".join(f"{name} {rate:,.0f}/s" for name, rate in made.rates.items()),
    ]
    lines += covered_lines(made.sample)
    span_s = len(estimate.mace_s) * estimate.width_s
    if estimate.is_unbounded and made.is_trace:
        lines.append(
            f"latency     worst {format_s(estimate.worst_s)} by the end of these {span_s:g} s, p99 "
            f"{format_s(estimate.quantile_s(0.99))}, mean {format_s(estimate.mean_s)}; over them "
            f"{estimate.bottleneck.name} has {estimate.bottleneck.load:.0%} of what it can do, so "
            "it has a backlog then, and what comes next is not known"
        )
    elif estimate.is_unbounded:
        lines.append(
            f"latency     {estimate.bottleneck.name} is overloaded: over these {span_s:g} s it has "
            f"{estimate.bottleneck.load:.0%} of what it can do. Worst {format_s(estimate.worst_s)} "
            f"by then, and more as long as the rates stay; {made.sustainable:.2f} times these it "
            "could do"
        )
    else:
        lines.append(_latency_line(made))
    is_enough = made.is_trace and made.verdict in ("kept", "may be missed")
    if made.too_much is not None and not is_enough:
        lines.append(f"too much    {made.too_much}")
    if made.considered:
        each = ", ".join(f"{way} {worst_text(worst)}" for way, worst in made.considered.items())
        lines.append(f"placements  worst latency of each considered: {each}")
    if made.unseen:
        unseen = ", ".join(made.unseen)
        lines.append(f"not seen    in the {made.sample.kind}, and taken to cost nothing: {unseen}")
    if made.uncounted:
        lines.append(f"not counted {uncounted_text(made.uncounted)}")
    if made.gates is not None:
        lines += gate_lines(made.gates)
    if made.shedding:
        lines += shed_lines(made.shedding)
    if made.verdict is not None and plan.deadline_ns is not None:
        lines.append(f"deadline    {format_ns(plan.deadline_ns)} {_verdict_text(made)}")
    lines += [*(f"holds not   {reason}" for reason in not_held(plan)), "", *_table(estimate)]
    lines += [f"beside it   {reason}" for reason in made.breaks]
    most = estimate.bottleneck
    lines += [
        "",
        f"bottleneck  {most.name}: {', '.join(most.operators) or 'nothing'}"
        + (
            "" if np.isinf(made.sustainable) else f"; it could do {made.sustainable:.2f} times this"
        ),
        f"relief      {made.relief}",
    ]
    if made.gates is not None and (by_slack := relief_by_slack(made.gates)):
        lines.append(by_slack)
    if made.replicas is not None:
        lines += made.replicas.lines()
    return lines


def _latency_line(made: Prediction) -> str:
    """Return one figure with the range that its sample supports, or the reason for none."""
    estimate, supported = made.estimate, made.supported
    has_circle = np.isinf(made.bounds_s[1]) and not made.uncounted
    bound = "; upper bound not known: ways come back" if has_circle else ""
    if not supported.has_figure:
        return f"latency     no figure can be given: {supported.why}{bound}"
    of_what = "of what leaves by then: " if estimate.is_held else ""
    return (
        f"latency     {of_what}worst {format_s(estimate.worst_s)} ({supported.text}{bound}), p99 "
        f"{format_s(estimate.quantile_s(0.99))}, mean {format_s(estimate.mean_s)}; Mace "
        f"{format_s(estimate.mace_worst_s)}"
    )


def _verdict_text(made: Prediction) -> str:
    if made.verdict == "may be missed":
        return f"may be missed: {made.may_come_to}"
    if made.verdict == "not kept" and made.keeps_by_dropping:
        return "is kept by dropping alone"
    return f"is {made.verdict}"


def _table(estimate: LatencyEstimate) -> list[str]:
    width = max(len("slot"), *(len(node.name) for node in estimate.nodes))
    lines = [
        f"{node.name:<{width}}  {node.load:>5.0%}  {node.peak:>5.0%}   {node.headroom:>8.0%}   "
        f"{format_s(node.worst_s):>14}   {', '.join(node.operators)}".rstrip()
        for node in estimate.nodes
    ]
    return [f"{'slot':<{width}}   load   peak   headroom     most backlog   runs", *lines]


def _relief(plan: Plan, heaviest: str, cores: float, beside: Sequence[str]) -> str:
    others = [name for name in beside if name != heaviest]
    if others and cores < 1 and plan.offered > 1:
        return f"place it apart from {', '.join(others)}"
    (stage,) = (each for each in plan.stages if each.name == heaviest)
    if way := divided(stage, cores):
        return f"give it replicas ({way})"
    return "it cannot be divided; a faster core, or less work for each event"


def worst_text(seconds: float) -> str:
    """Return a worst latency as text; inf is without bound."""
    return "without bound" if seconds == float("inf") else format_s(seconds)

"""Waits in a flow's gates, predicted before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from slackwater.runtime.foresight.gates import (
    GatedEstimate,
    GatedFlow,
    GatedOperator,
    GateWait,
    SourceTimes,
    estimate_gated,
    gated_operators,
)
from slackwater.runtime.foresight.layout import Layout
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, arrivals_of
from slackwater.runtime.json_form import JsonView, View
from slackwater.runtime.model import (
    NS_PER_SECOND,
    ON_ARRIVAL,
    READY_ONLY,
    ReleaseRule,
    format_ns,
    format_s,
)
from slackwater.runtime.plan.plan import Plan

__all__ = ["GatePart", "above", "at_speed", "gate_lines", "gate_part", "relief_by_slack"]

KEPT_BACK, MOST_KEPT_BACK_S = 0.025, 0.15
"""Reserve of a deadline that the rules of a tuner keep: a share, and its limit in seconds."""
_TOO_LATE = ("some of its rows", "too late for them")
TRIES = 4
"""Number of holds that are tried for gates tuned by a deadline."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GatePart(JsonView):
    """Waits in gates, and the latency with them.

    Attributes:
        made: the estimate with waits and work, and with each alone.
        flow: the flow of that estimate, with the holds of tuned gates.
        deadline_s: deadline of the flow; None if it has none.
        again: makes an estimate of the flow with other rules.
        times: {source: its sampled rows, at the rates ahead}.
        ahead_s: length of the time ahead, with the time after the horizon until waits end.
    """

    made: GatedEstimate
    flow: GatedFlow
    deadline_s: float | None
    again: Callable[[GatedFlow], GatedEstimate]
    times: Mapping[str, SourceTimes]
    ahead_s: float

    JSON: ClassVar[View] = {
        "worst_gate_s": "worst_gate_s",
        "worst_work_s": "worst_work_s",
        "ordering_s": "ordering_s",
        "each": lambda part: part.made.gates,
    }

    def never_text(self, wait: GateWait) -> str:
        """Return a text on a gate of `never`."""
        waits_s = self._by_sample_s(wait)
        if self.ahead_s < waits_s < float("inf"):
            return (
                f"{wait.name} holds its rows for some {format_ns(round(waits_s * NS_PER_SECOND))}, "
                f"longer than is looked ahead: {wait.waits_for} promises that late"
            )
        # The sample does not explain the wait: some rows stay that long for another reason.
        which, why = ("its rows", "nothing that lets them go") if np.isinf(waits_s) else _TOO_LATE
        return (
            f"{wait.name} holds {which} for longer than the time ahead: {wait.waits_for} promises "
            f"{why}"
        )

    def _by_sample_s(self, wait: GateWait) -> float:
        """Return the greatest lag of promises after rows, or the slack if less."""
        feeding = above(self.flow.graph, wait.name)
        known = [
            times
            for name, times in self.times.items()
            if arrivals_of(name) in feeding and len(times.stimulus_s)
        ]
        rows_s = min((float(times.lag_s.min()) for times in known), default=0.0)
        promised_s = max((_promise_lag_s(times) for times in known), default=float("inf"))
        slack_ns = self.flow.gated[wait.name].rule.slack_ns
        pace = min((times.pace for times in known), default=1.0)
        slack_s = float("inf") if slack_ns is None else slack_ns / NS_PER_SECOND / pace
        return min(promised_s - rows_s, slack_s)

    @property
    def worst_gate_s(self) -> float:
        """Longest wait of a result in gates, if work took no time."""
        return float(self.made.gate_s.max(initial=0.0))

    @property
    def worst_work_s(self) -> float:
        """Worst latency without gates."""
        return float(self.made.work_s.max(initial=0.0))

    @property
    def ordering_s(self) -> dict[str, float]:
        """{source: longest wait of its rows for their order}, the longest first.

        The latency in `made` includes it.
        """
        each = {name: _ordered_s(times) for name, times in self.times.items()}
        longest = sorted(each.items(), key=lambda item: -item[1])
        return {name: waits_s for name, waits_s in longest if waits_s > 0}

    @property
    def never(self) -> tuple[GateWait, ...]:
        """Gates that hold rows, if only some, for longer than the time ahead."""
        return tuple(gate for gate in self.made.gates if gate.longest_s == float("inf"))

    @property
    def longest(self) -> GateWait:
        """Gate with the longest wait of a row."""
        return max(self.made.gates, key=lambda gate: gate.longest_s)


def gate_part(
    plan: Plan,
    sample: FlowSample,
    series: Mapping[str, FloatArray],
    *,
    layout: Layout,
    width_s: float,
    speed: float | None = None,
) -> GatePart | None:
    """Return the waits in a plan's gates; None if they hold no rows.

    Args:
        plan: the plan, every stage in a slot.
        sample: a sample of the same flow.
        series: {source: shape (d,), rows that arrive in each subinterval}.
        layout: the stages in their slots, and the network between.
        width_s: length of a subinterval.
        speed: speed of event time by the clock; None if a stream is as dense as its sample, so at
            higher rates lags end sooner.
    """
    gated = gated_operators(plan.stages, origin_ns=sample.origin_ns)
    if not _holds_back(gated, sample):
        return None
    gated = {name: _fed_over(gate, layout) for name, gate in gated.items()}
    d = len(next(iter(series.values())))
    is_as_it_came = _is_as_it_came(sample, series, width_s)
    times = at_speed(sample, series, width_s, speed, is_as_it_came=is_as_it_came)
    known = [each for each in times.values() if len(each.stimulus_s)]
    latest_s = [max(float(each.lag_s.max()), _promise_lag_s(each, none_s=0.0)) for each in known]
    spread_s = max(latest_s) - min(float(each.lag_s.min()) for each in known)
    further_s = spread_s + _longest_held_s(gated, plan, pace=min(each.pace for each in known))
    further_s += _longest_gap_s(series, width_s)
    beyond = min(2 * d, int(further_s / width_s) + 50)
    flow = GatedFlow(
        graph=layout.graph,
        gated=gated,
        sources={
            name: times[name].ahead(
                counts,
                width_s,
                beyond=beyond,
                as_it_came=is_as_it_came if sample.recorded else times[name].ends_within(counts),
            )
            for name, counts in series.items()
        },
        sampled={name: each.series() for name, each in sample.times.items()},
    )

    def made(flow: GatedFlow) -> GatedEstimate:
        return estimate_gated(
            flow,
            layout.places,
            layout.capacity,
            d=d,
            width_s=width_s,
            hop_s=layout.hop_s,
            least_hop_s=layout.least_hop_s,
            slices=layout.slices,
        )

    deadline_s = None if plan.deadline_ns is None else plan.deadline_ns / NS_PER_SECOND
    estimate = made(flow)
    if deadline_s is not None and any(gate.is_tuned for gate in gated.values()):
        # A tuner finds the hold that fits the deadline beside the work; here a search does.
        kept_s = min(KEPT_BACK * deadline_s, MOST_KEPT_BACK_S)
        depth = _tuned_in_a_row(gated, plan)
        hold_s = (deadline_s - kept_s) / depth
        for _ in range(TRIES):
            worst_s = estimate.latency.worst_s
            if worst_s <= deadline_s and not estimate.latency.is_held:
                break
            over_s = 0.0 if flow.gated is gated else max(worst_s - deadline_s + kept_s, 0.0)
            hold_s = max(hold_s - over_s / depth, 0.0)
            flow = replace(flow, gated=_held(gated, hold_s))
            estimate = made(flow)
    return GatePart(
        made=estimate,
        flow=flow,
        deadline_s=deadline_s,
        again=made,
        times=times,
        ahead_s=(d + beyond) * width_s,
    )


def _ordered_s(times: SourceTimes) -> float:
    """Return the longest wait of a source's rows for their order."""
    return float((times.at_s - times.stimulus_s).max(initial=0.0))


def above(graph: QueryGraph, name: str) -> set[str]:
    """Return the names of an operator and of all upstream of it."""
    inputs = {operator.name: operator.inputs for operator in graph.operators}
    upstream, waiting = set[str](), [name]
    while waiting:
        feeder = waiting.pop()
        if feeder not in upstream:
            upstream.add(feeder)
            waiting.extend(inputs.get(feeder, ()))
    return upstream


def _promise_lag_s(times: SourceTimes, *, none_s: float = float("inf")) -> float:
    """Return the greatest lag of a source's promises; `none_s` if it has none.

    It is greatest just before the next promise: rows newer than the last one wait until then.
    """
    known = np.isfinite(times.promise_s)
    made_s, promised_s = times.promise_stimulus_s[known], times.promise_s[known]
    if not len(made_s):
        return none_s
    before_s = np.maximum.accumulate(np.append(promised_s[:1], promised_s[:-1]))
    return float((made_s - before_s / times.pace).max())


def _is_as_it_came(sample: FlowSample, series: Mapping[str, FloatArray], width_s: float) -> bool:
    """Whether arrivals ahead are those of the job on record."""
    return bool(sample.recorded) and all(
        name in sample.recorded
        and np.array_equal(counts, sample.recorded[name].series(d=len(counts), width_s=width_s))
        for name, counts in series.items()
    )


def at_speed(
    sample: FlowSample,
    series: Mapping[str, FloatArray],
    width_s: float,
    speed: float | None,
    *,
    is_as_it_came: bool,
) -> dict[str, SourceTimes]:
    """Return the sampled rows at the rates ahead."""
    times = sample.times
    if speed is not None:
        return {name: each.faster(speed / each.pace) for name, each in times.items()}
    if is_as_it_came:
        return dict(times)
    # The mean of a record includes pauses, as do the rates ahead.
    recorded = sum(record.mean for record in sample.recorded.values())
    sampled_rate = recorded or sum(each.rate for each in times.values())
    ahead = sum(float(counts.sum()) / (len(counts) * width_s) for counts in series.values())
    faster = ahead / sampled_rate if sampled_rate > 0 and ahead > 0 else 1.0
    return {name: each.faster(faster) for name, each in times.items()}


def _fed_over(gate: GatedOperator, layout: Layout) -> GatedOperator:
    """Return a gate with the links that feed it in place of their feeders."""
    to = gate.gate or gate.name
    feeds = [(layout.feeders.get((feeder, to), feeder), port) for feeder, port in gate.feeds]
    comes_by = gate.gate and layout.feeders.get((gate.gate, gate.name), gate.gate)
    return replace(gate, feeds=tuple(feeds), comes_by=comes_by)


def _holds_back(gated: Mapping[str, GatedOperator], sample: FlowSample) -> bool:
    """Whether rows wait: in a source for their order, or in a gate.

    In a gate they wait for another input, by its rule, or for a promise.
    """
    if any(times.is_ordered for times in sample.times.values()):
        return True
    holding = [gate for gate in gated.values() if gate.rule != ON_ARRIVAL]
    if not holding or not sample.times:
        return False
    # If a gate releases rows of several inputs on arrival, a later gate waits for its promises.
    waits = any(len(set(gate.feeds)) > 1 for gate in gated.values())
    waits = waits or any(gate.rule.slack_ns is not None for gate in holding)
    return waits or any(
        not np.array_equal(times.event_s, times.promise_s) for times in sample.times.values()
    )


def _held(gated: Mapping[str, GatedOperator], hold_s: float) -> dict[str, GatedOperator]:
    rule = ReleaseRule.hold(round(hold_s * NS_PER_SECOND))
    return {
        name: replace(gate, rule=rule) if gate.is_tuned else gate for name, gate in gated.items()
    }


def _longest_held_s(gated: Mapping[str, GatedOperator], plan: Plan, *, pace: float) -> float:
    """Return the longest hold of a row by the slacks of gates in a row."""
    slacks_s = {n: (gate.rule.slack_ns or 0) / NS_PER_SECOND for n, gate in gated.items()}
    return _most_in_a_row(plan, slacks_s) / pace


def _longest_gap_s(series: Mapping[str, FloatArray], width_s: float) -> float:
    """Return twice the gap between rows of the rarest source."""
    least = min((float(counts.mean()) for counts in series.values() if counts.any()), default=1.0)
    return 2 * width_s / least


def _tuned_in_a_row(gated: Mapping[str, GatedOperator], plan: Plan) -> int:
    return max(1, round(_most_in_a_row(plan, {n: gate.is_tuned for n, gate in gated.items()})))


def _most_in_a_row(plan: Plan, each: Mapping[str, float]) -> float:
    """Return the largest sum along any path of stages; absent ones count 0."""
    sums: dict[str, float] = {}
    for stage in plan.stages:
        before = max((sums[channel.source] for channel in stage.inputs), default=0.0)
        sums[stage.name] = before + each.get(stage.name, 0.0)
    return max(sums.values())


def gate_lines(part: GatePart) -> list[str]:
    """Return lines of text on work, waits, and their reasons."""
    ordering_s = part.ordering_s
    where = [*(["sources"] if ordering_s else []), *(["gates"] if part.flow.gated else [])]
    lines = [
        f"of that     at most {format_s(part.worst_work_s)} are queues and work, and at most "
        f"{format_s(part.worst_gate_s)} waiting in {' and '.join(where)}, each alone"
    ]
    if ordering_s:
        each = (f"{name} at most {format_s(waits_s)}" for name, waits_s in ordering_s.items())
        lines.append(f"in order    rows wait for those that are late: {', '.join(each)}")
    word = "gates       "
    for wait in _told(part.made.gates):
        lines.append(f"{word}{_gate_text(wait, part)}")
        word = " " * len(word)
    return lines


LEAST_RELIEF = 0.05
"""Least relief, as a share of the worst latency: predictions are not more exact than that."""


def relief_by_slack(part: GatePart) -> str | None:
    """Return the relief by a smaller slack; None if gates are the smaller part.

    It is predicted with that slack for the gate with the longest wait, and for the other stages of
    its step.
    """
    if not part.made.gates:
        return None  # the backlog outweighs waits in gates
    longest, worst_s = part.longest, part.made.latency.worst_s
    gate = part.flow.gated[longest.name]
    if gate.is_tuned or (part.worst_gate_s <= part.worst_work_s and not part.never):
        return None
    now_s = _slack_s(gate, longest, part)
    if part.deadline_s is not None and worst_s > part.deadline_s > part.worst_work_s:
        now_s = min(now_s, 2 * (part.deadline_s - part.worst_work_s))
    slack = ReleaseRule.slack(_rounded_ns(now_s / 2))
    gated = {
        name: replace(each, rule=slack) if each.origin == gate.origin else each
        for name, each in part.flow.gated.items()
    }
    again = part.again(replace(part.flow, gated=gated))
    (wait,) = (each for each in again.gates if each.name == longest.name)
    if again.latency.is_held or not (part.never or relieves(again.latency.worst_s, worst_s)):
        return None  # it would not help
    ms = (slack.slack_ns or 0) // 1_000_000
    text = f"{ms // 1_000}s" if ms % 1_000 == 0 else f"{ms}ms"
    return (
        f'relief      a smaller slack for {gate.origin or gate.name}: slack="{text}" would make '
        f"the worst {format_s(again.latency.worst_s)}, and {wait.late:.1%} of its rows come late"
    )


def relieves(worst_s: float, now_s: float) -> bool:
    """Whether a worst latency is better than now by `LEAST_RELIEF`."""
    return worst_s <= (1 - LEAST_RELIEF) * now_s


def _slack_s(gate: GatedOperator, wait: GateWait, part: GatePart) -> float:
    """Return the present slack, or the wait that it would be; seconds of event time."""
    if gate.rule.slack_ns is not None:
        return gate.rule.slack_ns / NS_PER_SECOND
    return part.worst_work_s + 1.0 if np.isinf(wait.longest_s) else wait.longest_s


def _rounded_ns(seconds: float) -> int:
    """Return a time with one significant digit, as users write a slack."""
    if seconds <= 1e-3:
        return 1_000_000
    digit = float(10.0 ** np.floor(np.log10(seconds)))
    return round(max(seconds // digit, 1.0) * digit * NS_PER_SECOND)


def _told(gates: Sequence[GateWait]) -> list[GateWait]:
    return sorted(gates, key=lambda wait: -wait.longest_s)[:5]


def _gate_text(wait: GateWait, part: GatePart) -> str:
    gate = part.flow.gated[wait.name]
    if np.isinf(wait.longest_s):
        return (
            f"{part.never_text(wait)}; give it idle=, promise= or a smaller disorder=, or the gate "
            'a slack="…"'
        )
    rule = "until all have promised" if gate.rule == READY_ONLY else gate.rule.text
    rule += " (as the deadline leaves)" if gate.is_tuned and gate.rule != READY_ONLY else ""
    text = (
        f"{wait.name} holds rows {rule}: at most {format_s(wait.longest_s)}, mean "
        f"{format_s(wait.mean_s)}"
    )
    if wait.longest_s > 0:
        text += f", the longest for {wait.waits_for}"
    return text + (f"; {wait.late:.1%} come late" if wait.late > 0 else "")

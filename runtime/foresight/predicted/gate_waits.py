"""Waits in a flow's gates, predicted before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

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
"""Of a deadline, what the rules of a tuner keep back."""
_TOO_LATE = ("some of its rows", "too late for them")
TRIES = 4
"""Holds that are tried, of gates that a deadline tunes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GatePart:
    """Waits in gates, and the latency with them.

    Attributes:
        made: waiting and work together, and each alone.
        flow: what it was made from, with the holds of gates that are tuned.
        deadline_s: of the flow; None: it has none.
        again: what would be made of the flow with other rules.
        times: {source: its sampled rows, as they will come}.
        ahead_s: how far is looked ahead, what waits at the end of the time asked for included.
    """

    made: GatedEstimate
    flow: GatedFlow
    deadline_s: float | None
    again: Callable[[GatedFlow], GatedEstimate]
    times: Mapping[str, SourceTimes]
    ahead_s: float

    def never_text(self, wait: GateWait) -> str:
        """Return what is known of a gate of `never`."""
        waits_s = self._by_sample_s(wait)
        if self.ahead_s < waits_s < float("inf"):
            return (
                f"{wait.name} holds its rows for some {format_ns(round(waits_s * NS_PER_SECOND))}, "
                f"longer than is looked ahead: {wait.waits_for} promises that late"
            )
        # Nothing of the sample says that they stay for so long: some of them do, for another cause.
        which, why = ("its rows", "nothing that lets them go") if np.isinf(waits_s) else _TOO_LATE
        return (
            f"{wait.name} holds {which} for longer than the time ahead: {wait.waits_for} promises "
            f"{why}"
        )

    def _by_sample_s(self, wait: GateWait) -> float:
        """Return the greatest lag of promises after rows, or the slack if less."""
        feeding = above(self.flow.graph, wait.name)
        there = [
            one
            for name, one in self.times.items()
            if arrivals_of(name) in feeding and len(one.stimulus_s)
        ]
        rows_s = min((float(one.lag_s.min()) for one in there), default=0.0)
        promised_s = max((_promise_lag_s(one) for one in there), default=float("inf"))
        slack_ns = self.flow.gated[wait.name].rule.slack_ns
        pace = min((one.pace for one in there), default=1.0)
        slack_s = float("inf") if slack_ns is None else slack_ns / NS_PER_SECOND / pace
        return min(promised_s - rows_s, slack_s)

    @property
    def worst_gate_s(self) -> float:
        """The longest that a result waits in gates, if work took no time."""
        return float(self.made.gate_s.max(initial=0.0))

    @property
    def worst_work_s(self) -> float:
        """The longest that a result takes without gates."""
        return float(self.made.work_s.max(initial=0.0))

    @property
    def ordering_s(self) -> dict[str, float]:
        """{source: longest wait of its rows for their order}, the longest first.

        What that makes of a latency is in `made`.
        """
        each = {name: _ordered_s(one) for name, one in self.times.items()}
        longest = sorted(each.items(), key=lambda one: -one[1])
        return {name: waits_s for name, waits_s in longest if waits_s > 0}

    @property
    def never(self) -> tuple[GateWait, ...]:
        """Gates that hold rows, if only some, for longer than the time ahead."""
        return tuple(one for one in self.made.gates if one.longest_s == float("inf"))

    @property
    def longest(self) -> GateWait:
        """The gate in which a row waits longest."""
        return max(self.made.gates, key=lambda one: one.longest_s)

    def to_json(self) -> dict[str, object]:
        """Return plain values; times in seconds, None for without bound."""
        return {
            "worst_gate_s": self.worst_gate_s,
            "worst_work_s": self.worst_work_s,
            "ordering_s": self.ordering_s,
            "each": [
                {
                    "name": one.name,
                    "rule": one.rule,
                    "longest_s": None if np.isinf(one.longest_s) else one.longest_s,
                    "mean_s": one.mean_s,
                    "waits_for": one.waits_for,
                    "late": one.late,
                }
                for one in self.made.gates
            ],
        }


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
        plan: every stage in a slot.
        sample: of the same flow.
        series: {source: shape (d,), rows that arrive in each subinterval}.
        layout: where its stages are, and what lies between.
        width_s: how long a subinterval is.
        speed: how many times faster than the clock event time goes; None: a stream is as dense as
            its sample, so where rows come faster, their lag is over sooner.
    """
    gated = gated_operators(plan.stages, origin_ns=sample.origin_ns)
    if not _holds_back(gated, sample):
        return None
    gated = {name: _fed_over(gate, layout) for name, gate in gated.items()}
    d = len(next(iter(series.values())))
    is_as_it_came = _is_as_it_came(sample, series, width_s)
    times = at_speed(sample, series, width_s, speed, is_as_it_came=is_as_it_came)
    there = [one for one in times.values() if len(one.stimulus_s)]
    latest_s = [max(float(one.lag_s.max()), _promise_lag_s(one, none_s=0.0)) for one in there]
    spread_s = max(latest_s) - min(float(one.lag_s.min()) for one in there)
    further_s = spread_s + _longest_held_s(gated, plan, pace=min(one.pace for one in there))
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
        sampled={name: one.series() for name, one in sample.times.items()},
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
    found = made(flow)
    if deadline_s is not None and any(gate.is_tuned for gate in gated.values()):
        # A tuner finds what work leaves of the deadline; here it is looked for.
        kept_s = min(KEPT_BACK * deadline_s, MOST_KEPT_BACK_S)
        depth = _tuned_in_a_row(gated, plan)
        hold_s = (deadline_s - kept_s) / depth
        for _ in range(TRIES):
            worst_s = found.latency.worst_s
            if worst_s <= deadline_s and not found.latency.is_held:
                break
            over_s = 0.0 if flow.gated is gated else max(worst_s - deadline_s + kept_s, 0.0)
            hold_s = max(hold_s - over_s / depth, 0.0)
            flow = replace(flow, gated=_held(gated, hold_s))
            found = made(flow)
    return GatePart(
        made=found,
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
    """Return an operator of a graph, and all that feeds it."""
    inputs = {one.name: one.inputs for one in graph.operators}
    found, waiting = set[str](), [name]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting.extend(inputs.get(one, ()))
    return found


def _promise_lag_s(times: SourceTimes, *, none_s: float = float("inf")) -> float:
    """Return the greatest lag of a source's promises; `none_s` if it has none.

    That is most just before the next one: what is newer than the last has waited for it till then.
    """
    known = np.isfinite(times.promise_s)
    told_s, promised_s = times.promise_stimulus_s[known], times.promise_s[known]
    if not len(told_s):
        return none_s
    before_s = np.maximum.accumulate(np.append(promised_s[:1], promised_s[:-1]))
    return float((told_s - before_s / times.pace).max())


def _is_as_it_came(sample: FlowSample, series: Mapping[str, FloatArray], width_s: float) -> bool:
    """Whether what arrives ahead is what arrived in the job that is on record."""
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
    """Return the sampled rows as they will come."""
    times = sample.times
    if speed is not None:
        return {name: one.faster(speed / one.pace) for name, one in times.items()}
    if is_as_it_came:
        return dict(times)
    # Of a record the pauses count, too, as they do in what is asked.
    recorded = sum(one.mean for one in sample.recorded.values())
    seen = recorded or sum(one.rate for one in times.values())
    asked = sum(float(counts.sum()) / (len(counts) * width_s) for counts in series.values())
    faster = asked / seen if seen > 0 and asked > 0 else 1.0
    return {name: one.faster(faster) for name, one in times.items()}


def _fed_over(gate: GatedOperator, layout: Layout) -> GatedOperator:
    """Return a gate that is fed by links with a capacity."""
    feeds = [(layout.feeders.get((feeder, gate.name), feeder), port) for feeder, port in gate.feeds]
    comes_by = gate.gate and layout.feeders.get((gate.gate, gate.name), gate.gate)
    return replace(gate, feeds=tuple(feeds), comes_by=comes_by)


def _holds_back(gated: Mapping[str, GatedOperator], sample: FlowSample) -> bool:
    """Whether anything waits: a source's rows for their order, or any gate.

    A gate does for another input, by its rule, or for a promise.
    """
    if any(one.is_ordered for one in sample.times.values()):
        return True
    holding = [gate for gate in gated.values() if gate.rule != ON_ARRIVAL]
    if not holding or not sample.times:
        return False
    # Where a gate lets rows of several inputs go as they come, a later one waits for its promises.
    waits = any(len(set(gate.feeds)) > 1 for gate in gated.values())
    waits = waits or any(gate.rule.slack_ns is not None for gate in holding)
    return waits or any(
        not np.array_equal(one.event_s, one.promise_s) for one in sample.times.values()
    )


def _held(gated: Mapping[str, GatedOperator], hold_s: float) -> dict[str, GatedOperator]:
    rule = ReleaseRule.hold(round(hold_s * NS_PER_SECOND))
    return {
        name: replace(gate, rule=rule) if gate.is_tuned else gate for name, gate in gated.items()
    }


def _longest_held_s(gated: Mapping[str, GatedOperator], plan: Plan, *, pace: float) -> float:
    """Return how long gates in a row may hold a row by slack."""
    slacks_s = {n: (gate.rule.slack_ns or 0) / NS_PER_SECOND for n, gate in gated.items()}
    return _most_in_a_row(plan, slacks_s) / pace


def _longest_gap_s(series: Mapping[str, FloatArray], width_s: float) -> float:
    """Return twice the gap between rows of the rarest source."""
    least = min((float(counts.mean()) for counts in series.values() if counts.any()), default=1.0)
    return 2 * width_s / least


def _tuned_in_a_row(gated: Mapping[str, GatedOperator], plan: Plan) -> int:
    return max(1, round(_most_in_a_row(plan, {n: gate.is_tuned for n, gate in gated.items()})))


def _most_in_a_row(plan: Plan, each: Mapping[str, float]) -> float:
    """Return the largest sum along any way through the stages; those not named have 0."""
    found: dict[str, float] = {}
    for stage in plan.stages:
        before = max((found[channel.source] for channel in stage.inputs), default=0.0)
        found[stage.name] = before + each.get(stage.name, 0.0)
    return max(found.values())


def gate_lines(part: GatePart) -> list[str]:
    """Return lines for a person: work, waits, and what is waited for."""
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
    for one in _told(part.made.gates):
        lines.append(f"{word}{_gate_text(one, part)}")
        word = " " * len(word)
    return lines


LEAST_RELIEF = 0.05
"""Part of the worst latency: what is predicted is not known any better."""


def relief_by_slack(part: GatePart) -> str | None:
    """Return the relief by a smaller slack; None if gates are the smaller part.

    It is predicted with that slack: of the gate in which rows wait longest, and of those that share
    its step's name.
    """
    if not part.made.gates:
        return None  # so much work that they were not looked at
    longest, worst_s = part.longest, part.made.latency.worst_s
    gate = part.flow.gated[longest.name]
    if gate.is_tuned or (part.worst_gate_s <= part.worst_work_s and not part.never):
        return None
    now_s = _slack_s(gate, longest, part)
    if part.deadline_s is not None and worst_s > part.deadline_s > part.worst_work_s:
        now_s = min(now_s, 2 * (part.deadline_s - part.worst_work_s))
    slack = ReleaseRule.slack(_rounded_ns(now_s / 2))
    gated = {
        name: replace(one, rule=slack) if one.origin == gate.origin else one
        for name, one in part.flow.gated.items()
    }
    found = part.again(replace(part.flow, gated=gated))
    (wait,) = (one for one in found.gates if one.name == longest.name)
    if found.latency.is_held or not (part.never or relieves(found.latency.worst_s, worst_s)):
        return None  # it would not do
    ms = (slack.slack_ns or 0) // 1_000_000
    text = f"{ms // 1_000}s" if ms % 1_000 == 0 else f"{ms}ms"
    return (
        f'relief      a smaller slack for {gate.origin or gate.name}: slack="{text}" would make '
        f"the worst {format_s(found.latency.worst_s)}, and {wait.late:.1%} of its rows come late"
    )


def relieves(worst_s: float, now_s: float) -> bool:
    """Whether a worst latency is better than now by `LEAST_RELIEF`."""
    return worst_s <= (1 - LEAST_RELIEF) * now_s


def _slack_s(gate: GatedOperator, wait: GateWait, part: GatePart) -> float:
    """Return what is waited for now, seconds of event time."""
    if gate.rule.slack_ns is not None:
        return gate.rule.slack_ns / NS_PER_SECOND
    return part.worst_work_s + 1.0 if np.isinf(wait.longest_s) else wait.longest_s


def _rounded_ns(seconds: float) -> int:
    """Return it with one digit that counts, as people write a slack."""
    if seconds <= 1e-3:
        return 1_000_000
    digit = float(10.0 ** np.floor(np.log10(seconds)))
    return round(max(seconds // digit, 1.0) * digit * NS_PER_SECOND)


def _told(gates: Sequence[GateWait]) -> list[GateWait]:
    return sorted(gates, key=lambda one: -one.longest_s)[:5]


def _gate_text(one: GateWait, part: GatePart) -> str:
    gate = part.flow.gated[one.name]
    if np.isinf(one.longest_s):
        return (
            f"{part.never_text(one)}; give it idle=, promise= or a smaller disorder=, or the gate "
            'a slack="…"'
        )
    rule = "until all have promised" if gate.rule == READY_ONLY else gate.rule.text
    rule += " (as the deadline leaves)" if gate.is_tuned and gate.rule != READY_ONLY else ""
    said = (
        f"{one.name} holds rows {rule}: at most {format_s(one.longest_s)}, mean "
        f"{format_s(one.mean_s)}"
    )
    if one.longest_s > 0:
        said += f", the longest for {one.waits_for}"
    return said + (f"; {one.late:.1%} come late" if one.late > 0 else "")

"""Admission of a flow beside those that run, by its predicted latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.predicted.coverage import not_held, uncounted_text
from slackwater.runtime.foresight.predicted.shed_outlook import shed_texts
from slackwater.runtime.model import format_ns, format_s
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.verdict import Verdict
from slackwater.runtime.shown import shown

if TYPE_CHECKING:
    from slackwater.runtime.foresight.predicted.prediction import Prediction

__all__ = ["Admission", "RunningFlow", "admitted_plan", "broken_by", "check_admission"]

Admission = Literal["reject", "warn"]


@dataclass(frozen=True, kw_only=True)
class RunningFlow:
    """Flow that runs, with its predicted needs.

    Attributes:
        name: name of the flow, or of its job.
        cores: CPU seconds a second that it needs.
        slots: number of its slots.
        worst_s: its predicted worst latency; inf: it is overloaded for ever.
        deadline_s: its deadline; None if it has none.
        is_known: whether it has a prediction; else it only takes slots.
    """

    name: str
    cores: float
    slots: int
    worst_s: float
    deadline_s: float | None
    is_known: bool = True


def check_admission(admission: object, rates: object, *, why_not: str | None = None) -> None:
    """Check that a prediction can be made if `admission` needs one.

    Args:
        admission: the argument of `submit`.
        rates: the rates of a prediction; None if there are none.
        why_not: reason why the history of a tuned flow was not enough; None if it has no history.
            The flow may still run with a warning.

    Raises:
        SettingError: `admission` is neither of the two, or there are no rates.
    """
    if admission not in (None, "reject", "warn"):
        raise SettingError(
            f"admission={shown(admission)} must be 'reject', to refuse a flow that would "
            "break a deadline, or 'warn', to run it with a note"
        )
    if admission is None or rates is not None or (admission == "warn" and why_not is not None):
        return
    no_rates = "no rates are given" if why_not is None else f"no rates are given ({why_not})"
    raise SettingError(
        f"admission={shown(admission)} needs a prediction, and {no_rates}: add "
        "rates= (--rate), events a second of each source or of all together, or a history "
        "that has a job of this version of the flow: tuning=sw.Tuning(history=…)"
    )


def broken_by(made: Prediction, running: Sequence[RunningFlow]) -> list[str]:
    """Return the deadlines of running flows that a flow would break, in words."""
    machines = {machine.name for machine in made.machines}
    shared = [node for node in made.estimate.nodes if node.name in machines]
    backlog_s = max((node.worst_s for node in shared), default=0.0)
    grows = any(node.load > 1 for node in shared) and not made.is_trace
    if not shared or (backlog_s <= 0 and not grows):
        return []
    broken = []
    for flow in running:
        if flow.deadline_s is None or flow.worst_s > flow.deadline_s:
            continue  # it has no deadline, or breaks it by itself
        worst_s = flow.worst_s + backlog_s  # at most: a wait for cores is also a wait for slots
        if grows or worst_s > flow.deadline_s:
            by = "has a backlog that grows for ever"
            by = by if grows else f"may reach {format_s(worst_s)}"
            broken.append(f"{flow.name} (deadline {format_s(flow.deadline_s)}) then {by}")
    return broken


def admitted_plan(made: Prediction, admission: Admission | None) -> Plan:
    """Return the plan of a prediction, with the prediction and its verdict.

    Args:
        made: prediction of a flow that is to run.
        admission: "reject": refuse a flow that would break a deadline; else note it.
    """
    plan = replace(made.plan, expected=made.expected())
    notes = [*plan.verdict.notes, *_not_known(made)]
    refusal, objection = plan.verdict.refusal, _against(made)
    if objection is not None and admission == "reject" and refusal is None:
        refusal = (
            f"flow {plan.flow!r} is refused: {objection}. Lower the rates, relieve the bottleneck "
            f"({made.relief}), or submit it with admission='warn' (--admission warn)"
        )
    elif objection is not None:
        notes.append(objection)
    return replace(plan, verdict=Verdict(refusal, tuple(notes)))


def _not_known(made: Prediction) -> list[str]:
    notes = []
    is_sample = made.sample.kind == "sample"
    if unseen := made.unseen:
        notes.append(
            f"the {made.sample.kind} shows no work of {', '.join(unseen)}, so it counts as none: "
            + ("predict with a larger sample" if is_sample else "give it costs=, or a sample")
        )
    if made.verdict == "may be missed":
        notes.append(
            f"its deadline of {format_ns(made.plan.deadline_ns or 0)} may be missed: "
            f"{made.may_come_to}, where {format_s(made.worst_s)} is estimated"
        )
    notes += not_held(made.plan)
    if closing := dict.fromkeys(s.subject.step for s in made.plan.stages if s.step.traits.close):
        notes.append(
            f"what windows of {', '.join(map(repr, closing))} wait is not predicted, for close= "
            "learns it from arrivals: they count as closed by the first event past their end"
        )
    notes += shed_texts([each for each in made.shedding if each.sheds or not each.helps])
    if made.uncounted:
        notes.append(uncounted_text(made.uncounted))
    if made.beside:
        notes.append(
            f"{', '.join(made.beside)} run on the same cores, of which nothing was predicted: "
            "their work is not counted; submit them with rates, too"
        )
    return notes


def _against(made: Prediction) -> str | None:
    reasons = []
    if made.gates is not None and (never := made.gates.never):
        reasons.append(f"gate {made.gates.never_text(never[0])}")
    elif (made.is_behind or made.keeps_deadline is False) and made.keeps_by_dropping:
        pass  # the flow drops its excess, and that is enough
    elif made.is_behind:
        could = made.sustainable
        kept = ", ".join(f"{name} {rate * could:,.0f}/s" for name, rate in made.rates.items())
        too_much = "" if made.too_much is None else f"; {made.too_much}"
        reasons.append(
            f"its backlog grows for ever: {_bottleneck(made)}{too_much}; the highest "
            f"rates that it keeps up with are {kept}"
        )
    elif made.keeps_deadline is False:
        limit = format_ns(made.plan.deadline_ns or 0)
        reasons.append(
            f"its deadline of {limit} would not be kept: the worst latency is "
            f"{format_s(made.worst_s)}; {_bottleneck(made)}"
        )
    if made.breaks:
        reasons.append(f"it would break what runs already: {'; '.join(made.breaks)}")
    if not reasons:
        return None
    rates = ", ".join(f"{name} {rate:,.0f}/s" for name, rate in made.rates.items())
    return f"{'; and '.join(reasons)} (predicted for {rates})"


def _bottleneck(made: Prediction) -> str:
    most = made.estimate.bottleneck
    backlog = f" and a backlog of up to {format_s(most.worst_s)}"
    backlog = "" if made.estimate.is_unbounded else backlog
    return f"{most.name} is the bottleneck, with {most.load:.0%} of what it can do{backlog}"

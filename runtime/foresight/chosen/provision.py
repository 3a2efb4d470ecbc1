"""Fewest nodes that keep a deadline. Source: [mace] §I, System Provisioning; §IX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from slackwater.runtime.foresight.predicted.gate_waits import GatePart
from slackwater.runtime.foresight.predicted.prediction import Prediction, Verdict
from slackwater.runtime.foresight.predicted.shed_outlook import shed_texts
from slackwater.runtime.json_form import JsonView, View
from slackwater.runtime.model import format_ns
from slackwater.runtime.plurals import agreeing, count_of

__all__ = ["Provision", "provisioned"]


@dataclass(frozen=True, eq=False)
class Provision(JsonView):
    """Fewest nodes that keep a deadline without drops.

    Attributes:
        deadline_s: the latency to keep.
        nodes: the fewest that keep it by the estimate; None if no number that was tried does.
        made: the prediction for them; if no number keeps it, for the best.
        fewer: the prediction for one node fewer; None if it is not tried.
        tried: largest number of nodes that was tried.
    """

    deadline_s: float
    nodes: int | None
    made: Prediction
    fewer: Prediction | None
    tried: int

    JSON: ClassVar[View] = {
        "nodes": "nodes",
        "verdict": "verdict",
        "prediction": "made",
        "one_fewer": "fewer",
    }

    @property
    def verdict(self) -> Verdict:
        """Verdict on the deadline with these nodes."""
        return self.made.verdict_on(self.deadline_s)

    def text(self) -> str:
        """Return the provision as text."""
        limit = format_ns(round(self.deadline_s * 1e9))
        if self.nodes is None:
            what, gates = self.made.estimate, self.made.gates
            if gates and gates.made.gates and _is_too_long(gates, self.deadline_s):
                longest = gates.longest
                head = (
                    f"no number of nodes keeps {limit}: rows wait in gates for longer, most in "
                    f"{longest.name}, for {longest.waits_for}; a slack bounds that"
                )
                return "\n".join([head, "", self.made.text()])
            if gates and not gates.made.gates and _is_too_long(gates, self.deadline_s):
                head = (
                    f"no number of nodes keeps {limit}: rows of {next(iter(gates.ordering_s))} "
                    "wait for longer to be put in order; a smaller disorder= bounds that"
                )
                return "\n".join([head, "", self.made.text()])
            limit += " with nothing dropped" if self.made.shedding else ""
            if self.made.too_much is not None:
                head = f"none of 1 to {self.tried} nodes keeps {limit}: {self.made.too_much}"
                return "\n".join([head, "", self.made.text()])
            head = (
                f"none of 1 to {self.tried} nodes keeps {limit}: {what.bottleneck.name} with "
                f"{', '.join(what.bottleneck.operators)} keeps a backlog"
            )
            return "\n".join([head, "", self.made.text()])
        many = f"{count_of(self.nodes, 'node')} {agreeing(self.nodes, 'keeps', 'keep')}"
        whole = " with nothing dropped" if self.made.shedding else ""
        may = ""
        if self.verdict == "may be missed":
            may = f", as it is estimated; it may be missed ({self.made.may_come_to})"
        lines = [f"{many} {limit}{whole}{may}: {_say(self.made)}"]
        if self.fewer is not None:
            lines.append(f"{self.nodes - 1} would not: {_say(self.fewer)}")
            worse = [
                outlook for outlook in self.fewer.shedding if outlook.sheds or not outlook.helps
            ]
            lines += [f"  {text}" for text in shed_texts(worse)]
        return "\n".join([*lines, "", self.made.text()])


class Ask(Protocol):
    """Question to a host with a number of nodes."""

    def __call__(self, nodes: int, *, placement: Mapping[str, str] | None = None) -> Prediction:
        """Return the prediction of the flow on the nodes, in a placement if given."""
        ...


def provisioned(ask: Ask, *, deadline_s: float, most: int) -> Provision:
    """Return the fewest nodes on which the predicted worst latency keeps a deadline.

    For a flow that sheds: the fewest on which no event must be dropped.

    Args:
        ask: predicts the flow on a number of nodes.
        deadline_s: the latency to keep.
        most: largest number of nodes to try, at least 1.
    """
    before: Prediction | None = None
    for nodes in range(1, most + 1):
        made = ask(nodes)
        # More nodes can use the placement of fewer: a fresh search may miss it.
        if before is not None and _worse(made) > _worse(before):
            made = ask(nodes, placement=before.plan.slots)
        # Drops would keep it with fewer nodes, but they are for load that was not planned for.
        if made.keeps(deadline_s) and not any(outlook.sheds for outlook in made.shedding):
            return Provision(deadline_s, nodes, made, before, nodes)
        before = made
    assert before is not None, "at least one node was tried"
    return Provision(deadline_s, None, before, None, most)


def _is_too_long(gates: GatePart, deadline_s: float) -> bool:
    is_held = bool(gates.made.gates or gates.ordering_s)
    return bool(gates.never) or (is_held and gates.worst_gate_s > deadline_s)


def _worse(made: Prediction) -> tuple[bool, float]:
    return made.estimate.is_held, made.compared_s


def _say(made: Prediction) -> str:
    estimate = made.estimate
    busiest = estimate.bottleneck
    if made.is_behind:
        return f"{busiest.name} would be overloaded, with {busiest.load:.0%} of what it can do"
    worst = format_ns(round(estimate.worst_s * 1e9))
    when = " by the end of what is on record" if estimate.is_unbounded else ""
    return f"worst latency {worst}{when}, {busiest.name} at {busiest.load:.0%}"

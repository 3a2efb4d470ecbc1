"""How few nodes keep a deadline. Source: [mace] §I, System Provisioning; §IX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from slackwater.gate_waits import GatePart
from slackwater.prediction import Prediction, Verdict
from slackwater.recorded import History, statistics
from slackwater.runtime.errors import SettingError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.foresight.rates import Rate
from slackwater.runtime.model import Duration, format_ns
from slackwater.runtime.simulate import LinkModel
from slackwater.sampling import FlowSample
from slackwater.shed_outlook import shed_texts
from slackwater.simulation import Simulation

__all__ = ["Provision", "fewest_nodes"]


@dataclass(frozen=True, eq=False)
class Provision:
    """Fewest nodes that keep a deadline; where a step sheds, with nothing dropped.

    Attributes:
        deadline_s: the latency to keep.
        nodes: the fewest that keep it by the estimate; None: none of those considered does.
        made: the prediction for them; where none keeps it, for the best.
        fewer: for one node fewer; None without one.
        tried: how many nodes were considered, at most.
    """

    deadline_s: float
    nodes: int | None
    made: Prediction
    fewer: Prediction | None
    tried: int

    @property
    def verdict(self) -> Verdict:
        """The verdict on the deadline, on so many nodes."""
        return self.made.verdict_on(self.deadline_s)

    def text(self) -> str:
        """Return what a person reads."""
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
                f"{', '.join(what.bottleneck.operators)} is what stays behind"
            )
            return "\n".join([head, "", self.made.text()])
        many = "1 node keeps" if self.nodes == 1 else f"{self.nodes} nodes keep"
        whole = " with nothing dropped" if self.made.shedding else ""
        may = ""
        if self.verdict == "may be missed":
            may = f", as it is estimated; it may be missed ({self.made.may_come_to})"
        lines = [f"{many} {limit}{whole}{may}: {_say(self.made)}"]
        if self.fewer is not None:
            lines.append(f"{self.nodes - 1} would not: {_say(self.fewer)}")
            worse = [one for one in self.fewer.shedding if one.sheds or not one.helps]
            lines += [f"  {text}" for text in shed_texts(worse)]
        return "\n".join([*lines, "", self.made.text()])

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "nodes": self.nodes,
            "verdict": self.verdict,
            "prediction": self.made.to_json(),
            "one_fewer": None if self.fewer is None else self.fewer.to_json(),
        }


def fewest_nodes(  # noqa: PLR0913 - each by name
    flow: Dataflow,
    rates: Mapping[str, Rate] | Rate | None = None,
    *,
    deadline_s: float,
    cores: int = 1,
    sample: int | FlowSample = 1_000,
    history: History | None = None,
    horizon: Duration | None = None,
    most: int = 64,
    seed: int = 0,
    link: LinkModel | None = None,
    costs: Mapping[str, Duration] | None = None,
    speed: float | None = None,
) -> Provision:
    """Return the fewest nodes on which the predicted worst latency keeps a deadline.

    Of a flow with a step that sheds: the fewest on which nothing has to be dropped.

    Args:
        flow: as it will be submitted.
        rates: as `predict` takes them.
        deadline_s: the latency to keep, > 0; gates that the flow's own deadline tunes use it.
        cores: slots of each node.
        sample: rows of each source to sample, or a sample taken before.
        history: as `predict` takes it.
        horizon: as `predict` takes it.
        most: nodes to consider; more than there are stages never help.
        seed: of what models of rates draw.
        link: what lies between the nodes; None: as in the simulator.
        costs: as `predict` takes them.
        speed: as `predict` takes it.

    Raises:
        SettingError: the deadline is not above 0, or as of `predict`.
    """
    if not deadline_s > 0:
        raise SettingError(f"deadline_s={deadline_s} must be above 0")
    if flow.deadline_ns is not None:  # gates that it tunes are to keep the one that is asked for
        flow = flow.with_deadline(deadline_s)
    sample, rates = statistics(flow, rates, sample=sample, history=history, limits=None)
    before: Prediction | None = None
    tried = min(most, len(sample.graph.operators))
    for nodes in range(1, tried + 1):
        ask = partial(
            Simulation(nodes, cores=cores, link=link).predict,
            flow,
            rates,
            sample=sample,
            horizon=horizon,
            seed=seed,
            costs=costs,
            speed=speed,
        )
        made = ask()
        # What fewer nodes do more can do, too: a fresh search may miss it.
        if before is not None and _worse(made) > _worse(before):
            made = ask(placement=before.plan.slots)
        # Dropping would keep it with fewer nodes: that is for a load that was not planned for.
        if made.keeps(deadline_s) and not any(one.sheds for one in made.shedding):
            return Provision(deadline_s, nodes, made, before, nodes)
        before = made
    assert before is not None, "there is one node at least"
    return Provision(deadline_s, None, before, None, tried)


def _is_too_long(gates: GatePart, deadline_s: float) -> bool:
    is_held = bool(gates.made.gates or gates.ordering_s)
    return bool(gates.never) or (is_held and gates.worst_gate_s > deadline_s)


def _worse(made: Prediction) -> tuple[bool, float]:
    return made.estimate.is_held, made.compared_s


def _say(made: Prediction) -> str:
    found = made.estimate
    busiest = found.bottleneck
    if made.is_behind:
        return f"{busiest.name} would fall behind, with {busiest.load:.0%} of what it can do"
    worst = format_ns(round(found.worst_s * 1e9))
    when = " by the end of what is on record" if found.is_unbounded else ""
    return f"worst latency {worst}{when}, {busiest.name} at {busiest.load:.0%}"

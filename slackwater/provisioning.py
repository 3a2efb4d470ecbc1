"""Fewest nodes that keep a deadline, by the predictions of simulations."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.runtime.errors import SettingError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.foresight.chosen.provision import Provision, provisioned
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.foresight.rates import Rate
from slackwater.runtime.model import Duration
from slackwater.runtime.simulate import LinkModel
from slackwater.sampling import History, statistics
from slackwater.simulation import MOST_SLOTS, Simulation

__all__ = ["fewest_nodes"]


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
        flow: flow as it will be submitted.
        rates: rates as `predict` takes them.
        deadline_s: the latency to keep, > 0; gates that the flow's own deadline tunes use it.
        cores: slots of each node.
        sample: rows of each source to sample, or a sample taken before.
        history: history as `predict` takes it.
        horizon: horizon as `predict` takes it.
        most: nodes to consider; more than there are stages never help.
        seed: seed of the draws of models of rates.
        link: link between the nodes; that of the simulator if None.
        costs: costs as `predict` takes them.
        speed: speed as `predict` takes it.

    Raises:
        SettingError: the deadline is not above 0, or as of `predict`.
    """
    if not deadline_s > 0:
        raise SettingError(f"deadline_s={deadline_s} must be above 0")
    if flow.deadline_ns is not None:  # gates that it tunes are to keep the one that is asked for
        flow = flow.with_deadline(deadline_s)
    sample, rates = statistics(flow, rates, sample=sample, history=history, limits=None)

    def ask(nodes: int, *, placement: Mapping[str, str] | None = None) -> Prediction:
        return Simulation(nodes, cores=cores, link=link).predict(
            flow,
            rates,
            sample=sample,
            horizon=horizon,
            seed=seed,
            costs=costs,
            speed=speed,
            placement=placement,
        )

    # No stage is on two slots, so nodes beyond the stages of a plan for all of them never help.
    all_nodes = min(most, MOST_SLOTS // cores)
    stages = len(Simulation(all_nodes, cores=cores).plan(flow).stages)
    tried = min(all_nodes, stages)
    return provisioned(ask, deadline_s=deadline_s, most=tried)

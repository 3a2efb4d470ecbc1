"""Commands `slackwater plan` and `provision`: latency predicted before a flow runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from slackwater.cli.rate_options import History, Rates, Sample, known_rates
from slackwater.cli.shell import (
    AsJson,
    Placement,
    ReportedFailure,
    Target,
    load,
    placed,
    print_json,
    printed_errors,
)
from slackwater.cli.what_if_options import Cost, LinkCapacity, LinkDelay, Speed, costs_of, link_of
from slackwater.report.sanitize import echo
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import NS_PER_SECOND, duration_ns, format_ns

if TYPE_CHECKING:
    from slackwater.runtime.flow.dataflow import Dataflow

__all__ = ["plan", "provision"]

Horizon = Annotated[
    str | None,
    typer.Option(help="How long to look ahead: 60s unless told, or as long as the history is."),
]


def plan(  # noqa: PLR0913 - each by name
    flow: Target,
    *,
    rate: Rates = None,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes.")] = 3,
    cores: Annotated[int, typer.Option(min=1, help="Slots of each.")] = 1,
    sample: Sample = 1_000,
    history: History = None,
    horizon: Horizon = None,
    placement: Placement = None,
    link_capacity: LinkCapacity = None,
    link_delay: LinkDelay = None,
    cost: Cost = None,
    speed: Speed = None,
    as_json: AsJson = False,
) -> None:
    """Predict a flow's latency on a number of nodes; only a sample is run, here."""
    with printed_errors(as_json=as_json):
        from slackwater.runtime.foresight.predicted.asked import Ahead  # noqa: PLC0415 (slow)
        from slackwater.simulation import Simulation  # noqa: PLC0415

        flow_of_user = cast("Dataflow", load(flow).flow)
        place = Simulation(nodes, cores=cores, link=link_of(link_capacity, link_delay))
        rates = known_rates(rate, history)
        ahead = Ahead(placement=placed(placement), speed=speed)
        if horizon is not None:
            ahead["horizon"] = horizon
        if cost or rates is None or history is not None:  # they do not apply to other plans
            costs = costs_of(cost)
            made = place.predict(
                flow_of_user, rates, sample=sample, history=history, costs=costs, **ahead
            )
            plain, text = made.to_json(), made.text()
        else:
            choice = place.choose_plan(flow_of_user, rates, sample=sample, **ahead)
            made = choice.written.prediction
            plain = {**made.to_json(), "plans": choice.to_json()}
            text = f"{made.text()}\n{choice.text()}"
        if as_json:
            print_json(plain)
        else:
            echo(text)


def provision(  # noqa: PLR0913 - each by name
    flow: Target,
    *,
    rate: Rates = None,
    deadline: Annotated[
        str | None, typer.Option(help="The latency to keep; that of the flow unless told.")
    ] = None,
    cores: Annotated[int, typer.Option(min=1, help="Slots of each node.")] = 1,
    sample: Sample = 1_000,
    history: History = None,
    horizon: Horizon = None,
    most: Annotated[int, typer.Option(min=1, help="Nodes to consider.")] = 64,
    link_capacity: LinkCapacity = None,
    link_delay: LinkDelay = None,
    cost: Cost = None,
    speed: Speed = None,
    as_json: AsJson = False,
) -> None:
    """Find the fewest nodes that keep a deadline; exit with 1 if no number does.

    Also prints the latency with one node fewer.
    """
    with printed_errors(as_json=as_json):
        from slackwater.provisioning import fewest_nodes  # noqa: PLC0415 (as above)

        flow_of_user = cast("Dataflow", load(flow).flow)
        limit_ns = duration_ns(deadline, what="deadline") if deadline else flow_of_user.deadline_ns
        if limit_ns is None:
            raise SettingError(
                f"flow {flow_of_user.name!r} has no deadline; say which one to keep: --deadline 2s"
            )
        answer = fewest_nodes(
            flow_of_user,
            known_rates(rate, history),
            deadline_s=limit_ns / NS_PER_SECOND,
            cores=cores,
            sample=sample,
            history=history,
            horizon=horizon,
            most=most,
            link=link_of(link_capacity, link_delay),
            costs=costs_of(cost),
            speed=speed,
        )
        if as_json:
            print_json({"deadline": format_ns(limit_ns), **answer.to_json()})
        else:
            echo(answer.text())
        if answer.nodes is None:
            raise ReportedFailure(f"no number of nodes was found that keeps {format_ns(limit_ns)}")

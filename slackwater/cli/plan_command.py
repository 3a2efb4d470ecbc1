"""`slackwater plan` and `slackwater provision`: latency known before a flow runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from slackwater.cli.rate_options import History, Rates, Sample, known_rates
from slackwater.cli.shell import (
    AsJson,
    Placement,
    Target,
    Told,
    errors_told,
    load,
    placed,
    print_json,
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
    """Predict a flow's latency on a number of nodes; runs only a sample, here."""
    with errors_told(as_json=as_json):
        from slackwater.plan_choice import Ahead  # noqa: PLC0415 (slow to import)
        from slackwater.simulation import Simulation  # noqa: PLC0415

        user_flow = cast("Dataflow", load(flow).flow)
        place = Simulation(nodes, cores=cores, link=link_of(link_capacity, link_delay))
        rates = known_rates(rate, history)
        ahead = Ahead(placement=placed(placement), speed=speed)
        if horizon is not None:
            ahead["horizon"] = horizon
        if cost or rates is None or history is not None:  # then other plans are not known
            costs = costs_of(cost)
            prediction = place.predict(
                user_flow, rates, sample=sample, history=history, costs=costs, **ahead
            )
            plain, text = prediction.to_json(), prediction.text()
        else:
            choice = place.choose_plan(user_flow, rates, sample=sample, **ahead)
            prediction = choice.written.prediction
            plain = {**prediction.to_json(), "plans": choice.to_json()}
            text = f"{prediction.text()}\n{choice.text()}"
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
    """Print how few nodes keep a deadline; exit with 1 if none does."""
    with errors_told(as_json=as_json):
        from slackwater.provisioning import fewest_nodes  # noqa: PLC0415 (as above)

        user_flow = cast("Dataflow", load(flow).flow)
        limit_ns = duration_ns(deadline, what="deadline") if deadline else user_flow.deadline_ns
        if limit_ns is None:
            raise SettingError(
                f"flow {user_flow.name!r} has no deadline; say which one to keep: --deadline 2s"
            )
        answer = fewest_nodes(
            user_flow,
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
            raise Told(f"no number of nodes was found that keeps {format_ns(limit_ns)}")

"""Commands `slackwater plan` and `provision`: latency predicted before a flow runs."""

from __future__ import annotations

import re
from dataclasses import replace
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
from slackwater.report.sanitize import echo
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import NS_PER_SECOND, duration_ns, format_ns
from slackwater.runtime.shown import shown

if TYPE_CHECKING:
    from slackwater.runtime.simulate import LinkModel

LinkCapacity = Annotated[
    str | None,
    typer.Option(
        metavar="BYTES",
        help="What the link from each node to each other carries a second: 125M, 2.5M, 800k.",
    ),
]
LinkDelay = Annotated[
    str | None, typer.Option(help="How long a message travels between two nodes: 20ms.")
]
Cost = Annotated[
    list[str] | None,
    typer.Option(
        "--cost",
        metavar="STAGE=TIME",
        help="What a row of a stage takes on a core, in place of what the sample shows: work=2ms.",
    ),
]
Speed = Annotated[
    float | None,
    typer.Option(
        help="Speed of event time, as a multiple of the clock's: 1 where higher rates are a "
        "denser stream. As sources are paced unless told; else as dense as the sample, but faster."
    ),
]

_SIZES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_SIZE = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?)\s*([kMG]?)")


def link_of(capacity: str | None, delay: str | None) -> LinkModel | None:
    """Return the model of links between nodes; None if there are no options.

    Raises:
        SettingError: a capacity or a delay is not valid.
    """
    if capacity is None and delay is None:
        return None
    from slackwater.runtime.simulate import LinkModel  # noqa: PLC0415 (slow to import)

    delay_ns = LinkModel().delay_ns if delay is None else duration_ns(delay, what="--link-delay")
    if capacity is None:
        return LinkModel(delay_ns=delay_ns)
    matched = _SIZE.fullmatch(capacity.strip())
    if matched is None or not float(matched[1].replace("_", "")):
        raise SettingError(
            f"--link-capacity {shown(capacity)} is not a number of bytes a second above 0; write "
            "it like 125M, 2.5M or 800k"
        )
    size = float(matched[1].replace("_", "")) * _SIZES[matched[2]]
    return LinkModel(delay_ns=delay_ns, bytes_per_s=size)


def costs_of(words: list[str] | None) -> dict[str, str]:
    """Return the costs of `--cost` options.

    Raises:
        SettingError: an option is not STAGE=TIME, or a stage has two.
    """
    costs: dict[str, str] = {}
    for word in words or []:
        stage, sign, time = word.partition("=")
        if not (stage and sign and time) or stage in costs:
            fault = f"is the second cost of {stage!r}" if stage in costs else "is not STAGE=TIME"
            raise SettingError(f"--cost {word!r} {fault}; give it once for a stage, like work=2ms")
        costs[stage] = time
    return costs


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
        from slackwater.runtime.foresight.predicted.asked import Ahead, Known  # noqa: PLC0415 (slow)
        from slackwater.simulation import Simulation  # noqa: PLC0415

        flow_of_user = cast("Dataflow", load(flow).flow)
        place = Simulation(nodes, cores=cores, link=link_of(link_capacity, link_delay))
        rates = known_rates(rate, history)
        ahead = Ahead(placement=placed(placement), speed=speed)
        if horizon is not None:
            ahead["horizon"] = horizon
        known = Known(history=history, costs=costs_of(cost))
        if cost or rates is None or history is not None:  # they do not apply to other plans
            made = place.predict(
                flow_of_user, rates, sample=sample, history=history, costs=known["costs"], **ahead
            )
            plans = None
        else:
            plans = place.choose_plan(flow_of_user, rates, sample=sample, **ahead)
            made = plans.written.prediction
        if made.replicas is None:
            table = place.replica_table(flow_of_user, rates, sample=sample, **ahead, **known)
            made = replace(made, replicas=table)
        plain, text = made.to_json(), made.text()
        if plans is not None:
            plain, text = {**plain, "plans": plans.to_json()}, f"{text}\n{plans.text()}"
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

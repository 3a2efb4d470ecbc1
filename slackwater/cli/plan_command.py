"""`slackwater plan` and `slackwater provision`: latency known before a flow runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from runtime.errors import SettingError
from runtime.model import NS_PER_SECOND, duration_ns, format_ns
from slackwater.cli.shell import (
    AsJson,
    Placement,
    Target,
    errors_told,
    load,
    placed,
    print_json,
)
from slackwater.cli.what_if_options import Cost, LinkCapacity, LinkDelay, costs_of, link_of
from slackwater.report.sanitize import echo

if TYPE_CHECKING:
    from runtime.estimate.rates import Rate
    from runtime.flow.dataflow import Dataflow

__all__ = ["plan", "provision", "rates_of"]

Rates = Annotated[
    list[str] | None,
    typer.Option(
        "--rate", metavar="[SOURCE=]N", help="Events a second: of a source, or of all together."
    ),
]
Sample = Annotated[int, typer.Option(min=1, help="Rows of each source to measure costs with.")]
Horizon = Annotated[str, typer.Option(help="How long to look ahead.")]


def plan(  # noqa: PLR0913 - each by name
    flow: Target,
    *,
    rate: Rates = None,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes.")] = 3,
    cores: Annotated[int, typer.Option(min=1, help="Slots of each.")] = 1,
    sample: Sample = 1_000,
    horizon: Horizon = "60s",
    placement: Placement = None,
    link_capacity: LinkCapacity = None,
    link_delay: LinkDelay = None,
    cost: Cost = None,
    as_json: AsJson = False,
) -> None:
    """Predict a flow's latency on so many nodes; nothing is run but a sample, here."""
    with errors_told(as_json=as_json):
        from slackwater.simulation import Simulation  # noqa: PLC0415 (slow to import)

        found = cast("Dataflow", load(flow).flow)
        made = Simulation(nodes, cores=cores, link=link_of(link_capacity, link_delay)).predict(
            found,
            rates_of(rate),
            sample=sample,
            horizon=horizon,
            placement=placed(placement),
            costs=costs_of(cost),
        )
        if as_json:
            print_json(made.to_json())
        else:
            echo(made.text())


def provision(  # noqa: PLR0913 - each by name
    flow: Target,
    *,
    rate: Rates = None,
    deadline: Annotated[
        str | None, typer.Option(help="The latency to keep; that of the flow unless told.")
    ] = None,
    cores: Annotated[int, typer.Option(min=1, help="Slots of each node.")] = 1,
    sample: Sample = 1_000,
    horizon: Horizon = "60s",
    most: Annotated[int, typer.Option(min=1, help="Nodes to consider.")] = 64,
    link_capacity: LinkCapacity = None,
    link_delay: LinkDelay = None,
    cost: Cost = None,
    as_json: AsJson = False,
) -> None:
    """Say how few nodes keep a deadline, and what one fewer would do."""
    with errors_told(as_json=as_json):
        from slackwater.provisioning import fewest_nodes  # noqa: PLC0415 (as above)

        found = cast("Dataflow", load(flow).flow)
        limit_ns = duration_ns(deadline, what="deadline") if deadline else found.deadline_ns
        if limit_ns is None:
            raise SettingError(
                f"flow {found.name!r} has no deadline; say which one to keep: --deadline 2s"
            )
        answer = fewest_nodes(
            found,
            rates_of(rate),
            deadline_s=limit_ns / NS_PER_SECOND,
            cores=cores,
            sample=sample,
            horizon=horizon,
            most=most,
            link=link_of(link_capacity, link_delay),
            costs=costs_of(cost),
        )
        if as_json:
            print_json({"deadline": format_ns(limit_ns), **answer.to_json()})
        else:
            echo(answer.text())


def rates_of(words: list[str] | None) -> dict[str, Rate] | Rate:
    """Return the rates of `--rate` options.

    Raises:
        SettingError: none, one that is no number, or a mixture of both forms.
    """
    if not words:
        raise SettingError("no rate is given: --rate 10000, or --rate SOURCE=N for each source")
    found: dict[str, Rate] = {}
    for word in words:
        source, sign, number = word.rpartition("=")
        source = source.strip()
        try:
            value = float(number.replace("_", ""))
        except ValueError:
            raise SettingError(f"--rate {word!r} is not N or SOURCE=N, events a second") from None
        if (sign and not source) or source in found:
            said = "names no source" if not source else f"is the second rate of {source!r}"
            raise SettingError(f"--rate {word!r} {said}; give SOURCE=N once for each source")
        if not sign and len(words) > 1:
            raise SettingError(
                f"--rate {word!r} is for all sources together, so it stands alone; else give "
                "SOURCE=N for each"
            )
        if not sign:
            return value
        found[source] = value
    return found

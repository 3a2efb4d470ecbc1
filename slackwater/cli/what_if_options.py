"""Options of `slackwater plan` and `provision` for other links and other costs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import duration_ns
from slackwater.runtime.shown import shown

if TYPE_CHECKING:
    from slackwater.runtime.simulate import LinkModel

__all__ = ["Cost", "LinkCapacity", "LinkDelay", "Speed", "costs_of", "link_of"]

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

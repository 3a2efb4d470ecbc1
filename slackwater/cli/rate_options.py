"""Options of commands for rates, and for admission under a deadline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.runtime.errors import SettingError

if TYPE_CHECKING:
    from slackwater.runtime.foresight.rates import Rate

__all__ = [
    "AdmissionOption",
    "History",
    "Rates",
    "Sample",
    "known_rates",
    "predicted_by",
    "rates_of",
]


Rates = Annotated[
    list[str] | None,
    typer.Option(
        "--rate", metavar="[SOURCE=]N", help="Events a second: of a source, or of all together."
    ),
]
Sample = Annotated[int, typer.Option(min=1, help="Rows of each source to measure costs with.")]
History = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="In place of a sample: what earlier jobs of the flow have kept there "
        "(`Tuning(history=…)`); without --rate, at the rates that the newest had.",
    ),
]
AdmissionOption = Annotated[
    str | None,
    typer.Option(
        "--admission",
        metavar="[reject|warn]",
        help="A flow that would break a deadline at this --rate: refuse it, or warn.",
    ),
]


def predicted_by(
    rate: list[str] | None,
    sample: int,
    admission: str | None = None,
    history: Path | None = None,
) -> dict[str, Any]:
    """Return the arguments of `submit` and `explain` for these options.

    Without a rate they have none of a rate.

    Raises:
        SettingError: a rate is wrong.
    """
    options: dict[str, Any] = {} if admission is None else {"admission": admission}
    if history is not None:
        options["history"] = history
    return {"rates": rates_of(rate), "sample": sample, **options} if rate else options


def known_rates(words: list[str] | None, history: Path | None) -> dict[str, Rate] | Rate | None:
    """Return the rates of `--rate` options; None if those of the history hold.

    Raises:
        SettingError: as for `rates_of`.
    """
    return None if history is not None and not words else rates_of(words)


def rates_of(words: list[str] | None) -> dict[str, Rate] | Rate:
    """Return the rates of `--rate` options.

    Raises:
        SettingError: there is no rate, a rate is not a number, or both forms are mixed.
    """
    if not words:
        raise SettingError(
            "no rate is given; write --rate 10000, or --rate SOURCE=N for each source"
        )
    rates: dict[str, Rate] = {}
    for word in words:
        source, sign, number = word.rpartition("=")
        source = source.strip()
        try:
            value = float(number.replace("_", ""))
        except ValueError:
            raise SettingError(
                f"--rate {word!r} is not a rate; write N or SOURCE=N, in events a second"
            ) from None
        if (sign and not source) or source in rates:
            fault = "names no source" if not source else f"is the second rate of {source!r}"
            raise SettingError(f"--rate {word!r} {fault}; give SOURCE=N once for each source")
        if not sign and len(words) > 1:
            raise SettingError(
                f"--rate {word!r} is for all sources together, so it stands alone; else give "
                "SOURCE=N for each"
            )
        if not sign:
            return value
        rates[source] = value
    return rates

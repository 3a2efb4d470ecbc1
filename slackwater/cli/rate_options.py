"""The options by which a command is told rates, and what to do about a deadline that will break."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.errors import SettingError

if TYPE_CHECKING:
    from runtime.estimate.rates import Rate

__all__ = ["AdmissionOption", "Rates", "Sample", "predicted_by", "rates_of"]


class AdmissionWord(StrEnum):
    """What is done with a flow that would break a deadline."""

    REJECT = "reject"
    WARN = "warn"


Rates = Annotated[
    list[str] | None,
    typer.Option(
        "--rate", metavar="[SOURCE=]N", help="Events a second: of a source, or of all together."
    ),
]
Sample = Annotated[int, typer.Option(min=1, help="Rows of each source to measure costs with.")]
AdmissionOption = Annotated[
    AdmissionWord | None,
    typer.Option(
        "--admission", help="A flow that would break a deadline at this --rate: refuse it, or warn."
    ),
]


def predicted_by(
    rate: list[str] | None, sample: int, admission: AdmissionWord | None = None
) -> dict[str, Any]:
    """Return what `submit` and `explain` take of these options; nothing without a rate.

    Raises:
        SettingError: a rate is wrong.
    """
    said: dict[str, Any] = {} if admission is None else {"admission": admission.value}
    return said if not rate else {"rates": rates_of(rate), "sample": sample, **said}


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

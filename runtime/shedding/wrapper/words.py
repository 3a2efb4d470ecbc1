"""The values that a user writes for `shed=`, with lengths of time in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, ClassVar, ParamSpec, TypeVar

from slackwater.runtime.calls import checked_options
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Duration, duration_ns, format_ns
from slackwater.runtime.shedding.contest import ContestShedder
from slackwater.runtime.shedding.espice import EspiceShedder
from slackwater.runtime.shedding.settings import Drops, Model, Overload, SheddingSettings
from slackwater.runtime.shedding.shedder import Shedder
from slackwater.runtime.shedding.wrapper.shed_pattern import EventShedding
from slackwater.runtime.shown import shown

LEAST_LATENCY_NS = 1_000_000
P = ParamSpec("P")
S = TypeVar("S", bound=SheddingSettings)
_SETTINGS = tuple(field.name for field in fields(Model))


@dataclass(frozen=True)
class Espice(EventShedding):
    """[espice] ranks events by type and place, and by a feature where that loses less."""

    units: ClassVar[tuple[Drops, ...]] = ("stretches", "events", "pairs")

    @property
    def ranking(self) -> str:  # noqa: D102
        if self.feature is None:
            return "espice"
        return f"espice, by {self.feature!s} too where that loses fewer matches"

    def shedder(self, repetitions: Mapping[int, int]) -> Shedder:  # noqa: D102
        del repetitions
        kind = EspiceShedder if self.feature is None else ContestShedder
        return kind(self.model, seed=self.seed)


def named(word: Callable[P, S]) -> Callable[P, S]:
    """Begin the errors of a word with its name."""

    @wraps(word)
    def of_word(*args: P.args, **kwargs: P.kwargs) -> S:
        try:
            return word(*args, **kwargs)
        except SettingError as problem:
            raise SettingError(f"{word.__name__}: {problem}") from None

    return of_word


@checked_options
@named
def espice(
    latency: Duration,
    *,
    f: float | None = None,
    seed: int = 0,
    drops: Drops | None = None,
    feature: object | None = None,
    **model: Any,
) -> Espice:
    """Drop the events that cost the fewest matches, when a latency bound is at risk.

    Args:
        latency: the bound, from stimulus to egress; at least 1 ms.
        f: the share of it at which shedding starts, above 0 and below 1; omitted: 0.8, and with
            `drops="pairs"` found from the model.
        seed: the seed of all draws: a run that is repeated drops the same.
        drops: "stretches" of the stream, which are passed over whole; "events" from all windows
            that wait or from none; "pairs" of an event and a window, as the paper: see `Espice`.
            Omitted: "stretches"; "events" where a feature or the model says how to rank them.
        feature: an expression over a row's columns, of few different values, such as
            `sw.col("change") > 0`: text, whole numbers, or true and false. Events are told apart
            by it, too, where that has been seen to lose fewer matches.
        model: how utilities are learnt: `cells`, `scale`, `smooth`, `cutting`, `first`, `every`,
            `keep`, `detect`, `explore`, `sample`. See `Model`. Refused with `drops="stretches"`,
            which learns nothing.

    Raises:
        SettingError: a value is out of its range, has no effect, or its name is unknown.

    Source: [espice] §3; the feature is after gSPICE, arXiv 2309.16405.
    """
    settings = model_of(model, _SETTINGS)
    if drops is None:
        drops = "stretches" if feature is None and not model else "events"
    if drops == "stretches" and model:
        raise SettingError(
            f"{min(model)}= has no effect with drops='stretches', which learns nothing; omit it, "
            "or write drops='events' or 'pairs'"
        )
    return Espice(overload_of(latency, f), settings, seed, drops, feature)


def overload_of(latency: Duration, f: float | None) -> Overload:
    """Return the settings of a bound in words.

    Raises:
        SettingError: it is shorter than a slice of work.
    """
    latency_ns = duration_ns(latency, what="latency", positive=True)
    if latency_ns < LEAST_LATENCY_NS:
        raise SettingError(
            f"latency={shown(latency)} is shorter than {format_ns(LEAST_LATENCY_NS)}, and one "
            "slice of work alone takes up to 2 ms; give a longer bound"
        )
    return Overload(latency_ns, f)


def model_of(given: dict[str, Any], names: Iterable[str]) -> Model:
    """Return the settings of a model, of which only some names are allowed.

    Raises:
        SettingError: another name, or a value out of its range.
    """
    wrong = sorted(given.keys() - set(names))
    if wrong:
        raise SettingError(
            f"there is no setting {shown(wrong[0])}; there are {', '.join(sorted(names))}"
        )
    return Model(**given)

"""The values that a user writes for `shed=`, with lengths of time in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import wraps
from typing import Any, ParamSpec

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Duration, duration_ns, format_ns
from slackwater.runtime.shedding.settings import Drops, Espice, Kind, Model, Overload
from slackwater.runtime.shown import shown

LEAST_LATENCY_NS = 1_000_000
P = ParamSpec("P")
_SETTINGS = tuple(field.name for field in fields(Model))


def _named(word: Callable[P, Espice]) -> Callable[P, Espice]:
    """Begin the errors of a word with its name."""

    @wraps(word)
    def of_word(*args: P.args, **kwargs: P.kwargs) -> Espice:
        try:
            return word(*args, **kwargs)
        except SettingError as problem:
            raise SettingError(f"{word.__name__}: {problem}") from None

    return of_word


@_named
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
    kind: Kind = "espice" if feature is None else "contest"
    settings = _model(model, _SETTINGS)
    if drops is None:
        drops = "stretches" if feature is None and not model else "events"
    if drops == "stretches" and model:
        raise SettingError(
            f"{min(model)}= has no effect with drops='stretches', which learns nothing; omit it, "
            "or write drops='events' or 'pairs'"
        )
    return Espice(_overload(latency, f), settings, seed, kind, drops=drops, feature=feature)


@_named
def random_shedding(
    latency: Duration,
    *,
    f: float | None = None,
    seed: int = 0,
    drops: Drops = "events",
    **model: Any,
) -> Espice:
    """Drop events at random, when a latency bound is at risk.

    Args:
        latency: the bound, from stimulus to egress; at least 1 ms.
        f: the share of it at which shedding starts; omitted: 0.8.
        seed: the seed of all draws.
        drops: "events" or "pairs", as of `espice`.
        model: `explore` and `sample`, as of `espice`.

    Raises:
        SettingError: a value is out of its range, or its name is unknown.
    """
    settings = _model(model, ("explore", "sample"))
    return Espice(_overload(latency, f), settings, seed, "random", drops=drops)


@_named
def baseline_shedding(
    latency: Duration,
    *,
    repetitions: Mapping[int, int] | None = None,
    f: float | None = None,
    seed: int = 0,
    drops: Drops = "events",
    **model: Any,
) -> Espice:
    """Drop events by how often the pattern and windows have their type.

    Args:
        latency: the bound, from stimulus to egress; at least 1 ms.
        f: the share of it at which shedding starts; omitted: 0.8.
        seed: the seed of all draws.
        drops: "events" or "pairs", as of `espice`.
        repetitions: {code of a type: how often it stands in the pattern}.
        model: `first`, `every`, `keep`, `explore` and `sample`, as of `espice`.

    Raises:
        SettingError: a value is out of its range, or its name is unknown.

    Source: [espice] §4.1, *baseline*.
    """
    settings = _model(model, ("first", "every", "keep", "explore", "sample"))
    if repetitions is not None and not isinstance(repetitions, Mapping):
        raise SettingError(
            f"repetitions={shown(repetitions)} must be {{code of a type: times in the pattern}}; "
            "omit it to have it counted"
        )
    pairs = tuple((repetitions or {}).items())
    overload = _overload(latency, f)
    baseline = Espice(overload, settings, seed, "baseline", pairs, drops)
    return replace(baseline, repetitions=tuple(sorted(pairs)))


def _overload(latency: Duration, f: float | None) -> Overload:
    latency_ns = duration_ns(latency, what="latency", positive=True)
    if latency_ns < LEAST_LATENCY_NS:
        raise SettingError(
            f"latency={shown(latency)} is shorter than {format_ns(LEAST_LATENCY_NS)}, and one "
            "slice of work alone takes up to 2 ms; give a longer bound"
        )
    return Overload(latency_ns, f)


def _model(given: dict[str, Any], names: Iterable[str]) -> Model:
    wrong = sorted(given.keys() - set(names))
    if wrong:
        raise SettingError(
            f"there is no setting {shown(wrong[0])}; there are {', '.join(sorted(names))}"
        )
    return Model(**given)

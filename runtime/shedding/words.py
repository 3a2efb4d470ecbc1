"""What a user writes behind `shed=`: lengths of time in words, the rest as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from runtime.errors import SettingError
from runtime.model import Duration, duration_ns
from runtime.shedding.settings import Espice, Kind, Model, Overload


def espice(
    latency: Duration,
    *,
    f: float | None = None,
    seed: int = 0,
    feature: object | None = None,
    **model: Any,
) -> Espice:
    """Drop the events that are least likely to be in a match, when a latency bound is at risk.

    Args:
        latency: the bound, from stimulus to egress.
        f: the share of it at which shedding starts, above 0 and below 1; left away: found from the
            model.
        seed: of all draws: a run that is repeated drops the same.
        feature: an expression over a row's columns, of few different values, such as
            `sw.col("change") > 0`: text, whole numbers, or true and false. Events are told apart
            by it, too, where that has been seen to lose fewer matches.
        model: how utilities are learnt: `cells`, `scale`, `smooth`, `cutting`, `first`, `every`,
            `keep`, `detect`, `explore`, `sample`. See `Model`.

    Raises:
        SettingError: one is out of its range, or there is none of that name.

    Source: [espice] §3; the feature is after gSPICE, arXiv 2309.16405.
    """
    kind: Kind = "espice" if feature is None else "contest"
    return Espice(_overload(latency, f), _model("espice", model), seed, kind, feature=feature)


def random_shedding(
    latency: Duration, *, f: float | None = None, seed: int = 0, **model: Any
) -> Espice:
    """Drop events at random, when a latency bound is at risk.

    Args:
        latency: the bound, from stimulus to egress.
        f: the share of it at which shedding starts; left away: 0.8.
        seed: of all draws.
        model: `explore` and `sample`, as of `espice`.

    Raises:
        SettingError: one is out of its range, or there is none of that name.
    """
    return Espice(_overload(latency, f), _model("random_shedding", model), seed, "random")


def baseline_shedding(
    latency: Duration,
    *,
    repetitions: Mapping[int, int] | None = None,
    f: float | None = None,
    seed: int = 0,
    **model: Any,
) -> Espice:
    """Drop events by how often a pattern, and windows, have their type, when a bound is at risk.

    Args:
        latency: the bound, from stimulus to egress.
        f: the share of it at which shedding starts; left away: 0.8.
        seed: of all draws.
        repetitions: {code of a type: how often it stands in the pattern}.
        model: `first`, `every`, `keep`, `explore` and `sample`, as of `espice`.

    Raises:
        SettingError: one is out of its range, or there is none of that name.

    Source: [espice] §4.1, *baseline*.
    """
    settings = _model("baseline_shedding", model)
    pairs = tuple(sorted((repetitions or {}).items()))
    return Espice(_overload(latency, f), settings, seed, "baseline", pairs)


def _overload(latency: Duration, f: float | None) -> Overload:
    return Overload(duration_ns(latency, what="latency", positive=True), f)


def _model(who: str, given: dict[str, Any]) -> Model:
    names = {field.name for field in fields(Model)}
    wrong = sorted(given.keys() - names)
    if wrong:
        raise SettingError(
            f"{who} has no setting {wrong[0]!r}; there are {', '.join(sorted(names))}"
        )
    return Model(**given)

"""Rivals of eSPICE drop at random, or by how often a pattern has a type.

`random_shedding` and `baseline_shedding` are values of `shed=`, as any custom class of
`sw.shedding.EventShedding` is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.runtime.model import Duration, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.draws import FloatArray
from slackwater.runtime.shedding.places import Sizes
from slackwater.runtime.shedding.settings import Drops, Model
from slackwater.runtime.shedding.shedder import CHANCE, Shedder
from slackwater.runtime.shedding.table import MOST_TYPES
from slackwater.runtime.shedding.windows import FinishedWindows
from slackwater.runtime.shedding.wrapper.shed_pattern import EventShedding
from slackwater.runtime.shedding.wrapper.words import model_of, named, overload_of


@dataclass(frozen=True)
class ByChance(EventShedding):
    """Shedding at random."""

    @property
    def ranking(self) -> str:  # noqa: D102
        return "random"

    def shedder(self, repetitions: Mapping[int, int]) -> RandomShedder:  # noqa: D102
        del repetitions
        return RandomShedder(seed=self.seed, explore=self.model.explore, sample=self.model.sample)


@dataclass(frozen=True)
class ByWeight(EventShedding):
    """Shedding by how often the pattern and windows have a type."""

    @property
    def ranking(self) -> str:  # noqa: D102
        return "baseline"

    def shedder(self, repetitions: Mapping[int, int]) -> BaselineShedder:  # noqa: D102
        return BaselineShedder(repetitions, model=self.model, seed=self.seed)


@named
def random_shedding(
    latency: Duration,
    *,
    f: float | None = None,
    seed: int = 0,
    drops: Drops = "events",
    **model: Any,
) -> ByChance:
    """Drop events at random, when a latency bound is at risk.

    Args:
        latency: the bound, from stimulus to egress; at least 1 ms.
        f: the share of it at which shedding starts; omitted: 0.8.
        seed: the seed of all draws.
        drops: "events" or "pairs", as of `sw.shedding.espice`.
        model: `explore` and `sample`, as of `sw.shedding.espice`.

    Raises:
        SettingError: a value is out of its range, or its name is unknown.
    """
    return ByChance(overload_of(latency, f), model_of(model, ("explore", "sample")), seed, drops)


@named
def baseline_shedding(
    latency: Duration,
    *,
    f: float | None = None,
    seed: int = 0,
    drops: Drops = "events",
    **model: Any,
) -> ByWeight:
    """Drop events by how often the pattern and windows have their type.

    Args:
        latency: the bound, from stimulus to egress; at least 1 ms.
        f: the share of it at which shedding starts; omitted: 0.8.
        seed: the seed of all draws.
        drops: "events" or "pairs", as of `sw.shedding.espice`.
        model: `first`, `every`, `keep`, `explore` and `sample`, as of `sw.shedding.espice`.

    Raises:
        SettingError: a value is out of its range, or its name is unknown.

    Source: [espice] §4.1, *baseline*.
    """
    settings = model_of(model, ("first", "every", "keep", "explore", "sample"))
    return ByWeight(overload_of(latency, f), settings, seed, drops)


class RandomShedder(Shedder):
    """RandomShedder drops every event with the same chance."""

    STATE = Shedder.STATE + Fields("_windows", "_events")

    def __init__(self, *, seed: int, explore: float, sample: float) -> None:
        super().__init__(seed=seed, explore=explore, sample=sample)
        self._windows = self._events = 0

    @property
    def size(self) -> float:  # noqa: D102
        return self._events / self._windows if self._windows else 0.0

    @property
    def ranked_by(self) -> str:  # noqa: D102
        return CHANCE

    def learn(self, finished: FinishedWindows) -> None:
        """Count windows and their events."""
        self._windows += len(finished)
        self._events += int(finished.sizes.sum())

    def _aimed(self) -> None:
        pass

    def chances(  # noqa: D102
        self,
        types: Int64Array,
        positions: Int64Array,  # noqa: ARG002 - it looks at nothing
        *,
        sizes: Sizes,  # noqa: ARG002
        features: Int64Array | None,  # noqa: ARG002
    ) -> FloatArray:
        return np.full(len(types), self._share)

    def bounds(  # noqa: D102
        self, types: Int64Array, features: Int64Array | None
    ) -> tuple[FloatArray, FloatArray]:
        chances = self.chances(types, types, sizes=1, features=features)
        return chances, chances


class BaselineShedder(Shedder):
    """BaselineShedder drops types by their weight in the pattern and in windows.

    The utility of a type is r / φ: how often it stands in the pattern, over how often it comes in a
    window. Types that are not in the pattern are dropped first, all alike; if they do not
    suffice, a share of each other type in proportion to φ / r, up to all of it.

    Args:
        repetitions: {code of a type: how often it stands in the pattern}.
        model: how often φ is counted again (`first`, `every`, `keep`), and of which windows.
        seed: the seed of the draws.

    Source: [espice] §4.1, *baseline*, which leaves open how the amounts follow from the utilities.
    """

    STATE = Shedder.STATE + Fields("_recent", "_counts", "_windows", "_turns", "_sums")

    def __init__(self, repetitions: Mapping[int, int], *, model: Model, seed: int) -> None:
        super().__init__(seed=seed, explore=model.explore, sample=model.sample)
        self._repetitions = dict(repetitions)
        self._model = model
        self._recent = np.zeros(MOST_TYPES)
        self._counts = np.zeros(MOST_TYPES)
        self._windows = 0  # since φ was last counted
        self._turns = 0
        self._sums = [0.0, 0.0, 0.0, 0.0]  # windows and events: recent, all
        self._aimed()

    @property
    def size(self) -> float:  # noqa: D102
        return self._sums[3] / self._sums[2] if self._sums[2] else 0.0

    @property
    def is_trained(self) -> bool:  # noqa: D102
        return bool(self._counts.any())

    @property
    def ranked_by(self) -> str:  # noqa: D102
        return "weight (type)" if self.is_trained else CHANCE

    def learn(self, finished: FinishedWindows) -> None:
        """Count types in windows that are over."""
        begin = 0
        while begin < len(finished):
            due = self._model.every if self._turns else self._model.first
            end = min(begin + due - self._windows, len(finished))
            part = finished.part(begin, end)
            types = part.events.types
            known = types[(types >= 0) & (types < MOST_TYPES)]
            self._recent += np.bincount(known, minlength=MOST_TYPES)
            self._sums[0] += len(part)
            self._sums[1] += float(part.sizes.sum())
            self._windows += end - begin
            if self._windows >= due:
                self._turn()
            begin = end

    def _turn(self) -> None:
        keep = self._model.keep
        self._counts = keep * self._counts + self._recent
        windows, events, all_windows, all_events = self._sums
        self._sums = [0.0, 0.0, keep * all_windows + windows, keep * all_events + events]
        self._recent = np.zeros(MOST_TYPES)
        self._windows, self._turns = 0, self._turns + 1
        self._aimed()

    def _aimed(self) -> None:
        self._chances = np.full(MOST_TYPES + 1, self._share)
        self._worths = np.ones(MOST_TYPES + 1)
        if self.is_trained and self._share:
            frequency = self._counts / self._counts.sum()
            repeated = np.zeros(MOST_TYPES)
            for code, times in self._repetitions.items():
                repeated[code] = times
            self._chances[:-1] = shares_by_weight(frequency, repeated, self._share)
            worths = np.divide(repeated, frequency, out=self._worths[:-1], where=frequency > 0)
            self._worths[:-1] = worths / max(worths.max(), 1.0)

    def chances(  # noqa: D102
        self,
        types: Int64Array,
        positions: Int64Array,  # noqa: ARG002 - it knows of no order
        *,
        sizes: Sizes,  # noqa: ARG002
        features: Int64Array | None,  # noqa: ARG002
    ) -> FloatArray:
        return self._chances.take(np.where(types < 0, MOST_TYPES, types), mode="clip")

    def worths(  # noqa: D102
        self,
        types: Int64Array,
        positions: Int64Array,  # noqa: ARG002 - it has no order
        *,
        sizes: Sizes,  # noqa: ARG002
        features: Int64Array | None = None,  # noqa: ARG002
    ) -> FloatArray | None:
        return self._worths.take(np.where(types < 0, MOST_TYPES, types), mode="clip")

    def bounds(  # noqa: D102
        self, types: Int64Array, features: Int64Array | None
    ) -> tuple[FloatArray, FloatArray]:
        chances = self.chances(types, types, sizes=1, features=features)
        return chances, chances


def shares_by_weight(frequency: FloatArray, repeated: FloatArray, share: float) -> FloatArray:
    """Return the dropped share of each type, for a share of all events.

    Args:
        frequency: shape (types,), φ: the share of events that each type is.
        repeated: shape (types,), r: how often each stands in the pattern.
        share: share to be dropped, 0 to 1.
    """
    outside = repeated == 0
    free = float(frequency[outside].sum())
    shares = np.where(outside, min(share / free, 1.0) if free else 1.0, 0.0)
    left = share - free
    if left <= 0:
        return shares
    inside = np.flatnonzero(~outside & (frequency > 0))
    weights = frequency[inside] / repeated[inside]
    order = np.argsort(-weights, kind="stable")
    inside, weights = inside[order], weights[order]
    # The factor λ of min(1, λ · weight): with the first n types dropped altogether.
    own = frequency[inside]
    before = np.cumsum(own) - own
    behind = np.cumsum((own * weights)[::-1])[::-1]
    factors = (left - before) / behind
    fits = np.flatnonzero(factors * weights <= 1.0)
    shares[inside] = np.minimum(1.0, factors[fits[0]] * weights) if len(fits) else 1.0
    return shares

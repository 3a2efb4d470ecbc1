"""What any shedder answers: which pairs of an event and a window to drop, given how many.

A shedder knows chances: how likely each pair is to be dropped. Whether it is, is drawn for the
event (`draws`), here, for all of them alike.

```
learn(finished windows)   what matches are made of
aim(Amount | None)        the overload detector's word: so much of each partition; None: nothing
drop(pairs)               which of them
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from runtime.model import BoolArray, Int64Array
from runtime.shedding.draws import FloatArray, draws_of_events, draws_of_windows
from runtime.shedding.places import Sizes
from runtime.shedding.windows import FinishedWindows

CHANCE = "chance"
"""What events are ranked by that cannot be told apart."""


@dataclass(frozen=True)
class Amount:
    """How much is to be dropped.

    Attributes:
        share: of the events of each partition, above 0 and at most 1.
        partitions: ρ, of each window, 1 or more.
    """

    share: float
    partitions: int = 1


class Shedder(ABC):
    """Drops pairs so that the expected number is kept, as much as it can be.

    Args:
        seed: of the draws, 0 or more.
        explore: the share of windows that nothing is dropped of, below 1: they are learnt from
            while others are shed. What they keep, others lose.
        sample: the share of windows whose events are all looked at, to learn from, while nothing
            is shed; `explore` of them at least.
    """

    def __init__(self, *, seed: int, explore: float, sample: float) -> None:
        self._seed = seed
        self._explore = explore
        self._sample = max(sample, explore)
        self._amount: Amount | None = None

    @property
    def amount(self) -> Amount | None:
        """What is dropped now; None: nothing."""
        return self._amount

    @property
    def size(self) -> float:
        """Events of a window, in the mean, as far as is known; 0: nothing is."""
        return 0.0

    @property
    def is_trained(self) -> bool:
        """Whether it can tell events apart; if not, they are dropped at random."""
        return True

    @property
    @abstractmethod
    def ranked_by(self) -> str:
        """What it goes by now, for people."""

    def aim(self, amount: Amount | None) -> None:
        """Drop so much from now on; None: nothing."""
        if amount != self._amount:
            self._amount = amount
            self._aimed()

    @property
    def _share(self) -> float:
        """What windows that may be shed have to lose, so that it is the share of all."""
        return 0.0 if self._amount is None else min(self._amount.share / (1 - self._explore), 1.0)

    def keeps_whole(self, windows: Int64Array) -> BoolArray:
        """Return of which windows, by their numbers, nothing is dropped, whatever the load."""
        return draws_of_windows(windows, seed=self._seed) < self._explore

    def samples(self, windows: Int64Array) -> BoolArray:
        """Return of which windows, by their numbers, all events should be learnt."""
        share = self._sample if self._amount is None else self._explore
        return draws_of_windows(windows, seed=self._seed) < share

    def drop(
        self,
        types: Int64Array,
        positions: Int64Array,
        *,
        windows: Int64Array,
        events: Int64Array,
        sizes: Sizes,
        features: Int64Array | None = None,
    ) -> BoolArray:
        """Return which pairs of an event and a window are dropped, shape (pairs,).

        Args:
            types: shape (pairs,), the code of the event's type.
            positions: shape (pairs,), among all events of the window, dropped ones too, from 0.
            windows: shape (pairs,), numbers of windows: each has one of its own.
            events: shape (pairs,), numbers of events.
            sizes: how many events each window has, or is likely to have; or all of them.
            features: shape (pairs,), codes of what else is known of the events.

        Source: [espice] Algorithm 2, lines 8–17.
        """
        if self._amount is None or not len(types):
            return np.zeros(len(types), np.bool_)
        chances = self.chances(types, positions, sizes=sizes, features=features)
        dropped: BoolArray = chances > 0
        if self._explore:
            likely = np.flatnonzero(dropped)
            dropped[likely] = ~self.keeps_whole(windows[likely])
        open_ = np.flatnonzero(dropped & (chances < 1))
        if len(open_):
            drawn = draws_of_events(events[open_], seed=self._seed)
            dropped[open_] = drawn < chances[open_]
        return dropped

    def loss_of(
        self,
        types: Int64Array,
        positions: Int64Array,
        *,
        sizes: Sizes,
        features: Int64Array | None = None,
    ) -> FloatArray:
        """Return the chance of each pair to be dropped, 0 if nothing is dropped now."""
        if self._amount is None:
            return np.zeros(len(types))
        return self.chances(types, positions, sizes=sizes, features=features)

    def surely_dropped(self, types: Int64Array, features: Int64Array | None = None) -> BoolArray:  # noqa: ARG002
        """Return which events are dropped wherever they are, but of windows that are kept whole."""
        return np.zeros(len(types), np.bool_)

    def never_dropped(self, types: Int64Array, features: Int64Array | None = None) -> BoolArray:  # noqa: ARG002
        """Return which events are dropped nowhere."""
        return np.full(len(types), self._amount is None)

    @abstractmethod
    def learn(self, finished: FinishedWindows) -> None:
        """Learn from windows that are over, and that nothing was dropped of."""

    @abstractmethod
    def chances(
        self,
        types: Int64Array,
        positions: Int64Array,
        *,
        sizes: Sizes,
        features: Int64Array | None,
    ) -> FloatArray:
        """Return the chance of each pair to be dropped, in a window that may be shed."""

    @abstractmethod
    def _aimed(self) -> None:
        """Prepare for another amount."""

    def snapshot(self) -> dict[str, Any]:
        """Return all state, as plain values."""
        amount = self._amount
        return {"amount": None if amount is None else [amount.share, amount.partitions]}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        amount = state["amount"]
        self._amount = None if amount is None else Amount(float(amount[0]), int(amount[1]))
        self._aimed()

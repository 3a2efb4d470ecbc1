"""A shedder decides which pairs of an event and a window to drop.

A shedder knows chances: how likely each pair is to be dropped. Whether it is, is drawn for the
event (`draws`), here, for all shedders alike.

```
learn(finished windows)   what matches are made of
aim(Amount | None)        the overload detector's word: so much of each partition; None if nothing
drop(pairs)               which of them; of a whole read: drop_spans(events, windows)
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.ranges import unfolded
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.draws import FloatArray, draws_of_events, draws_of_windows
from slackwater.runtime.shedding.places import Sizes
from slackwater.runtime.shedding.spans import Dropped, Spans
from slackwater.runtime.shedding.table import Learnt
from slackwater.runtime.shedding.windows import FinishedWindows

CHANCE = "chance"
"""The ranking of events that cannot be told apart."""


@dataclass(frozen=True)
class Amount:
    """The amount that is to be dropped.

    Attributes:
        share: the share of the events of each partition, above 0 and at most 1.
        partitions: ρ, of each window, 1 or more.
    """

    share: float
    partitions: int = 1


class Learning(NamedTuple):
    """The state of a shedder's models.

    Attributes:
        turns: times that the model was built.
        changes: times that the stream was found to be another, and older counts were dropped.
        learnt: the model in use; None if it has no utilities.
        compared: matches that two models were held against, older ones counting less.
        lost_shares: shares of these that the plain and the richer model would have lost, at about
            the present amount; None if it is not known.
    """

    turns: int = 0
    changes: int = 0
    learnt: Learnt | None = None
    compared: float = 0.0
    lost_shares: tuple[float, float] | None = None


class Shedder(ABC):
    """A shedder drops pairs so that the expected number is dropped, if possible.

    Args:
        seed: the seed of the draws, 0 or more.
        explore: the share of windows that nothing is dropped of, below 1: they are learnt from
            while others are shed. What they keep, others lose.
        sample: the share of windows whose events are all looked at, to learn from, while nothing
            is shed; `explore` of them at least.
    """

    STATE = Fields("_amount", elements={"_amount": Amount})
    is_by_window = False
    """Whether the worth of an event depends on the windows that it is in."""

    def __init__(self, *, seed: int, explore: float, sample: float) -> None:
        self._seed = seed
        self._explore = explore
        self._sample = max(sample, explore)
        self._amount: Amount | None = None

    @property
    def amount(self) -> Amount | None:
        """The amount that is dropped now; None if nothing is."""
        return self._amount

    @property
    def size(self) -> float:
        """The mean number of events of a window, as far as known; 0: not known."""
        return 0.0

    @property
    def is_trained(self) -> bool:
        """Whether it can rank events; if not, they are dropped at random."""
        return True

    @property
    @abstractmethod
    def ranked_by(self) -> str:
        """The ranking that it uses now, as text."""

    @property
    def learning(self) -> Learning:
        """The state of its models; all zero if it has none."""
        return Learning()

    def aim(self, amount: Amount | None) -> None:
        """Drop so much from now on; None if nothing is."""
        if amount != self._amount:
            self._amount = amount
            self._aimed()

    @property
    def _share(self) -> float:
        # Windows that are never shed lose nothing, so the others lose more.
        return 0.0 if self._amount is None else min(self._amount.share / (1 - self._explore), 1.0)

    def keeps_whole(self, windows: Int64Array) -> BoolArray:
        """Return for windows, by number, whether nothing is dropped, whatever the load."""
        return draws_of_windows(windows, seed=self._seed) < self._explore

    def samples(self, windows: Int64Array) -> BoolArray:
        """Return for windows, by number, whether all events should be learnt."""
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
            sizes: the events that each window has, or is likely to have; or all of them.
            features: shape (pairs,), codes of the events' features.

        Source: [espice] Algorithm 2, lines 8–17.
        """
        if self._amount is None or not len(types):
            return np.zeros(len(types), np.bool_)
        chances = self.chances(types, positions, sizes=sizes, features=features)
        dropped = self.drawn(chances, events)
        if self._explore:
            likely = np.flatnonzero(dropped)
            dropped[likely] = ~self.keeps_whole(windows[likely])
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

    def worths(
        self,
        types: Int64Array,  # noqa: ARG002 - for those that look
        positions: Int64Array,  # noqa: ARG002
        *,
        sizes: Sizes,  # noqa: ARG002
        features: Int64Array | None = None,  # noqa: ARG002
    ) -> FloatArray | None:
        """Return the chance of each pair to be in a match; None if nothing tells."""
        return None

    def drop_spans(
        self,
        types: Int64Array,
        spans: Spans,
        *,
        events: Int64Array,
        features: Int64Array | None = None,
    ) -> Dropped:
        """Return which pairs of a read are dropped, as `drop` does pair by pair.

        Args:
            types: shape (events,), codes of their types.
            spans: the windows that have them, none of which is kept whole.
            events: shape (events,), their numbers.
            features: shape (events,), codes of their features.
        """
        surely, open_ = self._settled(types, features, events)
        return self._of_open(types, spans, events, features, surely, np.flatnonzero(open_))

    def _settled(
        self, types: Int64Array, features: Int64Array | None, events: Int64Array
    ) -> tuple[BoolArray, BoolArray]:
        """Return which events are dropped everywhere, and which are open."""
        low, high = self.bounds(types, features)
        settled = np.flatnonzero(low == high)
        surely, open_ = low >= 1, (low < high) & (low < 1)
        surely[settled] = self.drawn(low[settled], events[settled])
        return surely, open_

    def _of_open(
        self,
        types: Int64Array,
        spans: Spans,
        events: Int64Array,
        features: Int64Array | None,
        surely: BoolArray,
        open_: Int64Array,
    ) -> Dropped:
        """Look at each pair of the events that are open."""
        low, high = open_.searchsorted(spans.begins), open_.searchsorted(spans.ends)
        looked_at, each = Spans(spans.firsts, low, high, spans.sizes), np.arange(len(spans))
        counts = looked_at.lengths
        if not counts.any():
            return Dropped(surely, looked_at, each, open_, np.zeros(0, np.bool_))
        which = np.repeat(each, counts)
        at = open_.take(unfolded(low, counts))
        dropped = self.drawn(
            self.chances(
                types.take(at),
                at - spans.firsts.take(which),
                sizes=spans.sizes.take(which),
                features=None if features is None else features.take(at),
            ),
            events.take(at),
        )
        return Dropped(surely, looked_at, each, open_, dropped)

    def drawn(self, chances: FloatArray, events: Int64Array) -> BoolArray:
        """Return for which of these events their draw is below a chance."""
        dropped: BoolArray = chances > 0
        open_ = np.flatnonzero(dropped & (chances < 1))
        if len(open_):
            drawn = draws_of_events(events[open_], seed=self._seed)
            dropped[open_] = drawn < chances[open_]
        return dropped

    @abstractmethod
    def bounds(
        self, types: Int64Array, features: Int64Array | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the least and the highest chance of each event, at any place."""

    @abstractmethod
    def learn(self, finished: FinishedWindows) -> None:
        """Learn from windows that are over, and lost nothing."""

    @abstractmethod
    def chances(
        self,
        types: Int64Array,
        positions: Int64Array,
        *,
        sizes: Sizes,
        features: Int64Array | None,
    ) -> FloatArray:
        """Return the chance of each pair to be dropped, if its window may be shed."""

    @abstractmethod
    def _aimed(self) -> None:
        """Prepare for another amount."""

    def derive(self) -> None:
        """Prepare for the amount."""
        self._aimed()

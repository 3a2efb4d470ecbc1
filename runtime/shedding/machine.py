"""Shedding of one operator: its detector, its shedder, and the counts of both.

```
observe(load)      → verdict       the shedder aims at its amount
drop(pairs)        → mask          counted
learn(windows)                     the model; f, if it is to be found
report()           → figures
```
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.breaks import choose_f
from slackwater.runtime.shedding.detector import Load, OverloadDetector, Verdict, verdict_of
from slackwater.runtime.shedding.places import Sizes
from slackwater.runtime.shedding.settings import SheddingSettings
from slackwater.runtime.shedding.shedder import CHANCE, Shedder
from slackwater.runtime.shedding.windows import FinishedWindows

MOST_MATCHES = 512
MOST_EVENTS = 256
"""The most events that are kept of a match; those of a longer one are evenly chosen."""
_Match = tuple[int, Int64Array, Int64Array, Int64Array | None, float]
"""A match: its window's size, its events' types, positions, features, and what each stands for."""
_LIKELY_SHARE = 1 / 6
"""The share of events to be dropped, until known: at an overload by 20 %, R1 of [espice] §4.1."""


@dataclass(frozen=True)
class SheddingReport:
    """A report of shedding.

    Attributes:
        pairs: pairs of events and windows, looked at while there was something to drop.
        dropped: pairs of these that were dropped.
        aimed: pairs of these that were to be dropped; "at least" may drop far more.
        starts: times that shedding began.
        uncured: times that a verdict said that dropping does not keep the bound.
        turns: times that the model was built.
        changes: times that the stream was found to be another, and older counts were dropped.
        f: the share of the bound at which shedding starts.
        is_trained: whether events can be ranked; if not, they are dropped at random.
        kept_share: the share of matches that are expected whole at the present amount; None if
            nothing is known of matches.
        verdict: the last one; None before the first.
        ranked_by: the ranking of events now.
        ranked: {ranking: pairs}, of `pairs`.
        compared: matches that the models of a contest were held against, older ones counting less.
        lost_shares: the shares of these that the plain and the richer model would have lost at
            about the present amount; None without a contest, or before anything was compared.
    """

    pairs: int
    dropped: int
    aimed: float
    starts: int
    uncured: int
    turns: int
    changes: int
    f: float
    is_trained: bool
    kept_share: float | None
    verdict: Verdict | None
    ranked_by: str = CHANCE
    ranked: dict[str, int] = field(default_factory=dict)
    compared: float = 0.0
    lost_shares: tuple[float, float] | None = None


class Shedding:
    """The shedding of one operator.

    Args:
        settings: the settings that the user wrote.
        repetitions: {code of a type: how often it stands in the pattern}.

    Attributes:
        shedder: decides which pairs are dropped.
        detector: decides how much is dropped.
    """

    STATE = Fields(
        "shedder",
        "detector",
        "_matches",
        "_verdict",
        "_turns",
        "_pairs",
        "_dropped",
        "_starts",
        "_uncured",
        "_aimed",
        "_ranked",
        elements={"_verdict": verdict_of},
    )

    def __init__(self, settings: SheddingSettings, repetitions: Mapping[int, int]) -> None:
        self._settings = settings
        self.shedder = settings.shedder(repetitions)
        self.detector = OverloadDetector(settings.overload)
        self._matches = RecentMatches()
        self._verdict: Verdict | None = None
        self._turns = 0  # turns of the model that f was found from
        self._pairs = self._dropped = self._starts = self._uncured = 0
        self._aimed = 0.0
        self._ranked: dict[str, int] = {}  # {ranking: pairs}

    def observe(self, load: Load) -> Verdict:
        """Return how much is dropped from now on."""
        before, verdict = self._verdict, self.detector.observe(load, size=self.shedder.size)
        self._verdict = verdict
        self._starts += verdict.is_overloaded and not (before and before.is_overloaded)
        self._uncured += not verdict.is_curable
        self.shedder.aim(verdict.amount)
        self._choose_f()
        return verdict

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
        """Return which pairs are dropped: see `Shedder.drop`."""
        dropped = self.shedder.drop(
            types, positions, windows=windows, events=events, sizes=sizes, features=features
        )
        self.count(len(types), int(np.count_nonzero(dropped)))
        return dropped

    def count(self, pairs: int, dropped: int) -> None:
        """Count pairs that were known to be dropped or kept without a look at each."""
        if self.shedder.amount is not None:
            self._pairs += pairs
            self._dropped += dropped
            self._aimed += self.shedder.amount.share * pairs
            by = self.shedder.ranked_by
            self._ranked[by] = self._ranked.get(by, 0) + pairs

    def learn(self, finished: FinishedWindows) -> None:
        """Learn from windows that are over, and that nothing was dropped of."""
        self.shedder.learn(finished)
        self._matches.learn(finished)

    def _choose_f(self) -> None:
        """Find f again if the model has changed; not in the midst of shedding."""
        learning, verdict = self.shedder.learning, self._verdict
        model = learning.learnt
        if (
            self._settings.overload.f is None
            and self._settings.drops == "pairs"  # there it says how large partitions are
            and model is not None
            and learning.turns != self._turns
            and model.is_trained
            and verdict is not None
            and verdict.q_max
            and not verdict.is_overloaded
        ):
            self._turns = learning.turns
            over = 1 - verdict.throughput / verdict.rate if verdict.rate else 0.0
            self.detector.f = choose_f(
                model.utilities,
                model.expected,
                q_max=verdict.q_max,
                share=max(over, _LIKELY_SHARE),
            )

    def report(self) -> SheddingReport:
        """Return the counts so far."""
        shedder = self.shedder
        explore = self._settings.model.explore
        learning = shedder.learning
        return SheddingReport(
            pairs=self._pairs,
            dropped=self._dropped,
            aimed=self._aimed,
            starts=self._starts,
            uncured=self._uncured,
            turns=learning.turns,
            changes=learning.changes,
            f=self.detector.f,
            is_trained=shedder.is_trained,
            kept_share=self._matches.kept_share(shedder, explore=explore),
            verdict=self._verdict,
            ranked_by=shedder.ranked_by,
            ranked=dict(self._ranked),
            compared=learning.compared,
            lost_shares=learning.lost_shares,
        )


class RecentMatches:
    """The newest matches of windows that nothing was dropped of: they predict what dropping costs.

    Each is kept with the places of its events. Against the chances of now: a match is lost if any
    of its events is dropped, and with it every other one of its window that it is in.

    Args:
        most: the most matches that are kept.
    """

    STATE = Fields("_matches")

    def __init__(self, most: int = MOST_MATCHES) -> None:
        self._matches: deque[_Match] = deque(maxlen=most)

    def __len__(self) -> int:
        return len(self._matches)

    def learn(self, finished: FinishedWindows) -> None:
        """Remember the matches of windows that are over."""
        ends = np.flatnonzero(np.diff(finished.matches, append=-1)) + 1
        begins = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        last = max(len(ends) - (self._matches.maxlen or 0), 0)  # older ones would be pushed out
        hits = finished.hits
        for begin, end in zip(begins[last:].tolist(), ends[last:].tolist(), strict=True):
            kept = np.arange(begin, end)
            if len(kept) > MOST_EVENTS:
                kept = begin + np.arange(MOST_EVENTS) * (end - begin) // MOST_EVENTS
            self._matches.append(
                (
                    int(finished.sizes[hits.windows[begin]]),
                    hits.types[kept],
                    hits.positions[kept],
                    None if hits.features is None else hits.features[kept],
                    (end - begin) / len(kept),
                )
            )

    def kept_share(self, shedder: Shedder, *, explore: float) -> float | None:
        """Return the share of matches that is expected whole; None: none is remembered.

        Of a window that is shed a match lasts if none of its events is dropped, each by a draw of
        its own. A match that takes the place of a lost one is not known here: the share of
        windows that still have one may be higher.

        Args:
            shedder: its chances count.
            explore: the share of windows of which nothing is dropped.
        """
        if not self._matches:
            return None
        counts = np.array([len(one[1]) for one in self._matches])
        features = [one[3] for one in self._matches]
        lost = shedder.loss_of(
            np.concatenate([one[1] for one in self._matches]),
            np.concatenate([one[2] for one in self._matches]),
            sizes=np.repeat([one[0] for one in self._matches], counts),
            features=None
            if any(one is None for one in features)
            else np.concatenate([one for one in features if one is not None]),
        )
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(1.0 - lost, 0.0))
        logs *= np.repeat([one[4] for one in self._matches], counts)
        whole = np.exp(np.add.reduceat(logs, np.cumsum(counts) - counts))
        return explore + (1.0 - explore) * float(whole.mean())

"""Remembered matches predict the cost of dropping before it is known.

Each is kept with the places of its events. Against the chances of now: a match is lost if any of
its events is dropped, and with it every other one of its window that it is in.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.shedder import Shedder
from slackwater.runtime.shedding.windows import FinishedWindows

MOST_MATCHES = 512
MOST_EVENTS = 256
"""The most events that are kept of a match; those of a longer one are evenly chosen."""

_Match = tuple[int, Int64Array, Int64Array, Int64Array | None, float]
"""A match: its window's size, its events' types, positions, features, and what each stands for."""


class RecentMatches:
    """The newest matches of windows that nothing was dropped of.

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

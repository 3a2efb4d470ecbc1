"""A richer model counts a feature of events besides their type and position.

A type and a feature together are a *kind*. A feature is any code that the caller has: the bin of
an attribute, or the types of the events in front (`types_in_front`). Kinds are hashed into rows by
the XOR of two random words (Zobrist), so there may be any number of features. A row with too few
events takes its values from its type, as in eSPICE.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.draws import mixed
from slackwater.runtime.shedding.espice import EspiceShedder
from slackwater.runtime.shedding.scales import scaled
from slackwater.runtime.shedding.settings import Model
from slackwater.runtime.shedding.table import MOST_TYPES, Learnt, UtilityTable
from slackwater.runtime.shedding.thresholds import MOST_UTILITY
from slackwater.runtime.shedding.windows import FinishedWindows, Places

ROWS = MOST_TYPES
NO_TYPE = -1
_SMOOTH = 16.0
"""With so many events a kind counts as much as its type."""


class FeaturedShedder(EspiceShedder):
    """eSPICE over kinds of events.

    Args:
        model: how it learns, and how it cuts; with `scale="type"` kinds are as by "probability".
        seed: the seed of the draws, and of the hash.

    Source: after gSPICE (Slo, Bhowmik, Rothermel, arXiv 2309.16405): features and Zobrist hashing
    are its idea. Differs: no trees; smoothing by the type in their place.
    """

    STATE = EspiceShedder.STATE + Fields("_kinds", "_owners")
    _looks_at = "type, place, feature"

    def __init__(self, model: Model, *, seed: int) -> None:
        self._kinds = UtilityTable(model.cells, scale=model.scale, smooth=_SMOOTH)
        self._owners: Int64Array = np.full(ROWS, NO_TYPE)  # (rows,), the type that a row is of
        self._place: Int64Array = np.full(ROWS, NO_TYPE)  # (rows,), in the model, at the last turn
        self._types = 0  # rows of the plain model, with one for unseen types: rows of kinds follow
        super().__init__(model, seed=seed)

    def _kinds_of(self, types: Int64Array, features: Int64Array | None) -> Int64Array:
        """Return the row of each event's kind, 0 to ROWS − 1."""
        words = mixed(types, salt=2 * self._seed + 5)
        if features is not None:
            words ^= mixed(features, salt=2 * self._seed + 6)
        rows: Int64Array = (words % np.uint64(ROWS)).astype(np.int64)
        return rows

    def _learn_part(self, part: FinishedWindows) -> None:
        super()._learn_part(part)
        hits, events = self._as_kinds(part.hits), self._as_kinds(part.events)
        self._kinds.learn(FinishedWindows(part.sizes, hits, part.matches, part.sampled, events))

    def _as_kinds(self, places: Places) -> Places:
        kinds = self._kinds_of(places.types, places.features)
        # Types may share a row by chance: the highest code owns it, whatever the order.
        np.maximum.at(self._owners, kinds, places.types)
        return Places(places.windows, kinds, places.positions)

    def _turn_tables(self, keep: float) -> None:
        super()._turn_tables(keep)
        self._kinds.turn(keep=keep)

    def _built(self) -> Learnt:
        """Return the rows of the plain model and then those of kinds, on one scale."""
        plain = super()._built()
        self._types = len(plain.utilities)
        codes = np.flatnonzero(self._kinds.seen_types())
        self._place = np.full(ROWS, NO_TYPE)
        self._place[codes] = self._types + np.arange(len(codes))
        kinds = self._kinds.only(codes)
        own = plain.rates[np.minimum(self._owners[codes], self._types - 1)]
        hits, rates = kinds.rates_with(own)
        rates = np.vstack([plain.rates, rates])
        # Each event is expected once, as its kind. An event of an unknown kind is looked up by
        # its type.
        expected = np.vstack([np.zeros_like(plain.expected), kinds.expected()])
        scale = "probability" if self._model.scale == "type" else self._model.scale
        utilities = scaled(scale, rates, rates, expected)
        utilities[: self._types][~np.append(self._table.seen_types(), False)] = MOST_UTILITY
        return Learnt(utilities, expected, rates, plain.size, plain.is_trained and bool(hits.any()))

    def _rows(self, types: Int64Array, features: Int64Array | None) -> Int64Array:
        kinds = self._kinds_of(types, features)
        place = self._place[kinds]
        is_known = (place >= 0) & (self._owners[kinds] == types)
        plain = np.where((types >= 0) & (types < self._types), types, self._types - 1)
        return np.where(is_known, place, plain)


def types_in_front(types: Int64Array, carried: Int64Array, *, classes: int = 8) -> Int64Array:
    """Return a feature of each event: the types among those just before it.

    Args:
        types: shape (rows,), of events one after the other.
        carried: shape (depth,), types of the events in front of these, newest last; a negative one
            is none. For what follows carry the last `depth` of both.
        classes: into which types are hashed, up to 62: a feature is a set of these.
    """
    depth, rows = len(carried), len(types)
    stream = np.concatenate([carried, types])
    class_of = (mixed(stream, salt=7) % np.uint64(classes)).astype(np.int64)
    bits = np.where(stream < 0, 0, np.int64(1) << class_of)
    features = np.zeros(rows, np.int64)
    for back in range(1, depth + 1):
        features |= bits[depth - back : depth - back + rows]
    return features

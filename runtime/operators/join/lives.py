"""Pairs of rows whose lives meet, of which some come or go.

A row of a key lives from a moment, its birth, to another, its death. A pair lives while both do:

```
moment      −1   0   1   2   3   end        pairs
left   a    ├────────────────────▶          a x   there before, deleted at 1
right  x    ├────────┤                      a y   inserted at 1
       y             ├───────────▶
none        ┤                               none is there while the right side has no row
```

A side without rows is a row, too: `None` above. It lives while the key has no other there. So left
rows without a partner are pairs with it, and those with a partner are pairs with its opposite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.ranges import starts_of_runs, unfold

__all__ = ["BEFORE", "NO_ROW", "Lives", "Members", "Met", "emptiness", "meetings"]

BEFORE = -1
"""Birth of a row that was there before all moments."""
NO_ROW = -1
"""Place of the row that stands for a side without rows."""


class Lives(NamedTuple):
    """Rows that come or go, each later than it came.

    Attributes:
        codes: shape (rows,), codes of their keys.
        places: shape (rows,), where they are stored.
        births: shape (rows,), the moment at which each comes; BEFORE if it was there.
        deaths: shape (rows,), the moment at which it goes; the end if it stays.
    """

    codes: Int64Array
    places: Int64Array
    births: Int64Array
    deaths: Int64Array

    def keep(self, mask: BoolArray) -> Lives:
        """Return those where `mask`, shape (rows,), is true."""
        if mask.all():
            return self
        return Lives(*(each[mask] for each in self))


@dataclass(frozen=True)
class Members:
    """Rows of one side.

    Attributes:
        changed: rows that come or go.
        staying: returns the rows of keys that neither come nor go, as pairs of (number of a key,
            place); codes of keys may be in any order.
    """

    changed: Lives
    staying: Callable[[Int64Array], tuple[Int64Array, Int64Array]]


class Met(NamedTuple):
    """Pairs that come or go.

    Attributes:
        places: shape (pairs,) each, places of the left and the right row.
        births: shape (pairs,), the moment from which both are there.
        deaths: shape (pairs,), the moment from which one is gone; the end if both stay.
    """

    places: tuple[Int64Array, Int64Array]
    births: Int64Array
    deaths: Int64Array


def meetings(left: Members, right: Members, end: int) -> Met:
    """Return the pairs of rows of equal keys whose lives meet.

    Pairs of two rows that stay are omitted.

    Args:
        left: rows of the left side.
        right: rows of the right side.
        end: the moment after all others.
    """
    # Of two that come at one moment the right one finds the left.
    first = _partners(right.changed, left, end, or_equal=True)
    second = _partners(left.changed, right, end, or_equal=False)
    return Met(
        (
            np.concatenate([first.places[1], second.places[0]]),
            np.concatenate([first.places[0], second.places[1]]),
        ),
        np.concatenate([first.births, second.births]),
        np.concatenate([first.deaths, second.deaths]),
    )


def _partners(own: Lives, other: Members, end: int, *, or_equal: bool) -> Met:
    """Return pairs of changing rows and of rows that are there when these come.

    Args:
        own: rows that look for others.
        other: members of the other side.
        end: the moment after all others.
        or_equal: whether they find changing rows that come at the same moment.
    """
    if not len(own.codes):
        return Met((own.places, own.places), own.births, own.deaths)
    staying, places = other.staying(own.codes)
    pairs_met = [Met((own.places[staying], places), own.births[staying], own.deaths[staying])]
    changed = other.changed
    if len(changed.codes):
        number, at = _alive(changed, own, end, or_equal=or_equal)
        deaths = np.minimum(own.deaths.take(number), changed.deaths.take(at))
        pairs = (own.places.take(number), changed.places.take(at))
        pairs_met.append(Met(pairs, own.births.take(number), deaths))
    return Met(
        (
            np.concatenate([met.places[0] for met in pairs_met]),
            np.concatenate([met.places[1] for met in pairs_met]),
        ),
        np.concatenate([met.births for met in pairs_met]),
        np.concatenate([met.deaths for met in pairs_met]),
    )


def _alive(lives: Lives, own: Lives, end: int, *, or_equal: bool) -> tuple[Int64Array, Int64Array]:
    """Return pairs of (row of `own`, row of `lives` that is there when it comes)."""
    # Those that stay are apart from others of their key: one would hide all deaths after it.
    width = end + 2
    parts = 2 * lives.codes + (lives.deaths == end)
    order = np.lexsort((lives.births, parts))
    firsts = parts.take(order) * width
    births = firsts + lives.births.take(order) + 1
    deaths = lives.deaths.take(order)
    # The greatest death so far of its part: all before the first that is later are gone.
    longest = np.maximum.accumulate(firsts + deaths + 1)
    sought = 2 * own.codes * width + own.births + 1
    sought = np.concatenate([sought, sought + width])
    until = births.searchsorted(sought, "right" if or_equal else "left")
    since = longest.searchsorted(sought, "right")
    number, at = unfold(since, np.maximum(until - since, 0))
    number %= len(own.codes)
    is_there = deaths.take(at) > own.births.take(number)
    return number[is_there], order.take(at[is_there])


def emptiness(side: Lives, before: Int64Array, end: int, *, is_empty: bool) -> Members:
    """Return the row that stands for a side while it is empty, or is not.

    Args:
        side: rows of the side that come or go.
        before: shape (codes,), the number of rows of each key before all moments.
        end: the moment after all others.
        is_empty: whether it stands for a side without rows.
    """
    came, went = side.births != BEFORE, side.deaths < end
    codes = np.concatenate([side.codes[came], side.codes[went]])
    moments = np.concatenate([side.births[came], side.deaths[went]])
    steps = np.ones(len(codes), dtype=np.int64)
    steps[np.count_nonzero(came) :] = -1
    order = np.lexsort((moments, codes))
    codes, moments, steps = codes.take(order), moments.take(order), steps.take(order)
    lasts = np.append(starts_of_runs(codes, moments), len(codes))[1:] - 1
    totals = steps.cumsum().take(lasts)
    codes, moments = codes.take(lasts), moments.take(lasts)
    firsts = starts_of_runs(codes)
    earlier = np.append(0, totals)[firsts].repeat(np.diff(firsts, append=len(codes)))
    numbers = before.take(codes) + totals - earlier
    now = numbers == 0
    was = np.append(False, now[:-1])
    was[firsts] = before.take(codes.take(firsts)) == 0
    flips = (now != was).nonzero()[0]
    codes, moments, now = codes.take(flips), moments.take(flips), now.take(flips)
    is_first = np.zeros(len(codes), dtype=np.bool_)
    is_first[starts_of_runs(codes)] = True
    following = np.full(len(codes), end, dtype=np.int64)
    following[:-1] = np.where(is_first[1:], end, moments[1:])
    begins, ends = now == is_empty, (now != is_empty) & is_first
    changed = Lives(
        np.concatenate([codes[begins], codes[ends]]),
        np.full(np.count_nonzero(begins) + np.count_nonzero(ends), NO_ROW, dtype=np.int64),
        np.concatenate([moments[begins], np.full(np.count_nonzero(ends), BEFORE)]),
        np.concatenate([following[begins], moments[ends]]),
    )

    def staying(keys: Int64Array) -> tuple[Int64Array, Int64Array]:
        stays = ((before.take(keys) == 0) == is_empty) & ~np.isin(keys, codes)
        number = stays.nonzero()[0]
        return number, np.full(len(number), NO_ROW, dtype=np.int64)

    return Members(changed, staying)

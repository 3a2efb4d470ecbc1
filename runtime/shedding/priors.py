"""A prior is the worth of a type at a place: type times place.

A table has thousands of cells, and most have seen next to nothing: of 500 types at 64 places a few
matches say little. But how often a type is in matches is known from all its places, and how much a
place adds from all its types. Their product is where each cell begins; its own events then move it.

```
          place 1   place 2   all
type A    6 of 40   0 of 40   0.075     prior of A at 1:  0.075 · 1.6 = 0.12
type B    2 of 10   2 of 10   0.2       prior of B at 2:  0.2   · 0.4 = 0.08
by place     1.6       0.4              hits there / hits if types alone counted: 8 / 5, 2 / 5
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.shedding.draws import FloatArray

_EVENTS = 4.0
"""A type is taken to have had so many further events like any other: that it was in no match so far
is no proof that it never will be. A type in no pattern still has the least, as it came often."""
_HITS = 16.0
"""With so many hits a place counts as much as the stretch that it is in."""


def prior_rates(hits: FloatArray, seen: FloatArray) -> FloatArray:
    """Return the hit rate of each cell if types and places were independent.

    Args:
        hits: shape (types, cells), counted.
        seen: shape (types, cells), events.

    Returns:
        shape (types, cells), 0 to 1; all 0 if there was no hit at all.
    """
    overall = hits.sum() / max(float(seen.sum()), 1.0)
    own_hits, own_seen = (counts.sum(axis=1, keepdims=True) for counts in (hits, seen))
    of_type = (own_hits + _EVENTS * overall) / (own_seen + _EVENTS)
    by_place = factors(hits.sum(axis=0), (seen * of_type).sum(axis=0))
    rates: FloatArray = np.minimum(of_type * by_place, 1.0)
    return rates


def factors(hits: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return the ratio of the hits at each place to the expected ones.

    From coarse to fine: of the window as a whole it is 1. Each half begins with the ratio of the
    whole, each quarter with its half's. So a place with few hits has the ratio of its
    neighbourhood.

    Args:
        hits: shape (cells,), counts of hits.
        wanted: shape (cells,), those that types alone let expect.
    """
    cells, parts = len(hits), 1
    ratios: FloatArray = np.ones(1)
    while parts < cells:
        finer = min(2 * parts, cells)
        begins = np.arange(finer) * cells // finer
        inside = ratios[np.arange(finer) * parts // finer]
        own_hits, own_wanted = (np.add.reduceat(counts, begins) for counts in (hits, wanted))
        ratios = (own_hits + _HITS * inside) / (own_wanted + _HITS)
        parts = finer
    return ratios


def shares_of_types(seen: FloatArray, besides: float) -> FloatArray:
    """Return the share of each type among the events of each cell, shape (types, cells).

    A type that came seldom by chance, or seldom to a cell, has a higher rate for it, and one that
    came often is dropped first. If chance counted in full as what is to come, less would be
    dropped than is wanted.

    Args:
        seen: shape (types, cells), events.
        besides: further events that each type, and each type in each cell in the mean, is taken to
            have had.

    Source: S(T, P) of [espice] §3.3. Smoothed: ours.
    """
    of_type = seen.sum(axis=1, keepdims=True)
    more = besides * np.count_nonzero(of_type)
    overall = (of_type + besides * (of_type > 0)) / max(float(of_type.sum()) + more, 1.0)
    overall = np.broadcast_to(overall, seen.shape)
    in_cell = np.broadcast_to(seen.sum(axis=0) + more, seen.shape)
    # Without events and without a prior, types have their overall shares.
    return np.where(in_cell > 0, ratio(seen + more * overall, in_cell), overall)


def ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return above / below, 0 where there is nothing below."""
    quotients: FloatArray = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return quotients

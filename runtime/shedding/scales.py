"""Scales turn counts into utilities, whole numbers from 0 to 100."""

from __future__ import annotations

from typing import Literal

import numpy as np

from slackwater.runtime.shedding.draws import FloatArray
from slackwater.runtime.shedding.thresholds import MOST_UTILITY, Utilities

Scale = Literal["rank", "probability", "type"]
"""`"type"`: of all hits of a type, the percentage at each place, as Table 1 of [espice] has it.
`"probability"`: hits for each event that came there, the highest being 100 (§3.2).
`"rank"`: by the same, so that as many events of a window have each value: ours."""

MOST_RANK = MOST_UTILITY - 1
"""100 is left for types that were never seen."""


def scaled(scale: Scale, hits: FloatArray, rates: FloatArray, expected: FloatArray) -> Utilities:
    """Return utilities, shape (types, cells).

    Args:
        scale: the scale of its windows.
        hits: shape (types, cells), counted.
        rates: shape (types, cells), hits for each event.
        expected: shape (types, cells), events of a window.
    """
    if scale == "type":
        sums = hits.sum(axis=1, keepdims=True)
        shares = np.divide(hits, sums, out=np.zeros_like(hits), where=sums > 0)
        return _whole(MOST_UTILITY * shares)
    if scale == "probability":
        shares = rates / max(float(rates.max(initial=0.0)), np.finfo(np.float64).tiny)
        return _whole(MOST_UTILITY * shares)
    return _ranked(rates, expected)


def _whole(values: FloatArray) -> Utilities:
    rounded: Utilities = np.rint(values).astype(np.uint8)
    return rounded


def _ranked(rates: FloatArray, expected: FloatArray) -> Utilities:
    """Return ranks: 0 for a rate of 0, else 1 to 99 by lesser rates."""
    different, which = np.unique(rates, return_inverse=True)
    counted = np.bincount(which.ravel(), weights=expected.ravel(), minlength=len(different))
    counted[different == 0] = 0.0
    below = np.cumsum(counted) - counted
    levels = 1 + np.floor((MOST_RANK - 1) * below / max(float(counted.sum()), 1e-300))
    levels[different == 0] = 0
    return levels[which].reshape(rates.shape).astype(np.uint8)

"""Classes of importance, and the share of the bound at which shedding starts."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.shedding.draws import FloatArray
from slackwater.runtime.shedding.settings import PLAIN_F
from slackwater.runtime.shedding.thresholds import LEVELS, Utilities, cdt, cdt_of_partitions

CLASSES = 3
SHARES = tuple(n / 20 for n in range(19, 0, -1))
"""The values of f that are tried, 0.95 to 0.05."""


def natural_breaks(weights: FloatArray, classes: int = CLASSES) -> Int64Array:
    """Return the highest value of each class but the last, for natural classes.

    Args:
        weights: shape (values,), how often each value 0, 1, … comes.
        classes: number of classes; fewer if there are fewer different values.

    Returns:
        ascending; the sum of squared distances to the mean of each class is least.

    Source: [espice] §3.4, *cluster the utilities*: it says not how. Fisher 1958, exact.
    """
    values = np.flatnonzero(weights > 0)
    classes = min(classes, len(values))
    if classes < 2:
        return np.empty(0, np.int64)
    w = weights[values]
    sums = [np.concatenate([[0.0], np.cumsum(w * values**power)]) for power in range(3)]
    end = len(values)
    begin_, end_ = np.meshgrid(np.arange(end), np.arange(1, end + 1), indexing="ij")
    n, s, q = (one[end_] - one[begin_] for one in sums)
    cost = np.where(end_ > begin_, q - s * s / np.where(end_ > begin_, n, 1.0), np.inf)
    best, froms = cost[0], []  # costs of the first values up to each, in one class
    for _ in range(classes - 1):
        shifted = np.concatenate([[np.inf], best[:-1]])[:, np.newaxis] + cost
        froms.append(shifted.argmin(axis=0))
        best = shifted.min(axis=0)
    breaks, at = [], end - 1
    for from_ in reversed(froms):
        at = int(from_[at]) - 1
        breaks.append(int(values[at]))
    return np.array(breaks[::-1])


def partitions_of(size: float, q_max: float, f: float) -> int:
    """Return ρ = ceil(ws / (q_max − f·q_max)): the number of partitions of a window.

    Source: [espice] §3.4, *dropping interval*.
    """
    room = max(q_max * (1.0 - f), 1.0)  # a part has at least one event
    return max(int(np.ceil(size / room - 1e-9)), 1)


def choose_f(utilities: Utilities, expected: FloatArray, *, q_max: float, share: float) -> float:
    """Return the greatest f at which each partition has x events of low importance.

    Low are all classes but the highest.

    Args:
        utilities: shape (types, cells).
        expected: shape (types, cells), events of a window.
        q_max: events that may wait.
        share: the share of the events that is to be dropped: x / p_size.

    Returns:
        if no f has such partitions: the one at which the partition that lacks most lacks least.

    Source: [espice] §3.4, *appropriate f value*. It asks for the minimum f with such
    partitions: that were 0, for a low f makes them large. A high one sheds seldom.
    """
    size = float(expected.sum())
    whole = cdt(utilities, expected)
    breaks = natural_breaks(np.diff(whole, prepend=0.0))
    low = int(breaks[-1]) if len(breaks) else LEVELS - 1
    best_f, best = PLAIN_F, -np.inf
    tried: dict[int, float] = {}  # {partitions: the share of the events to drop that is low}
    for f in SHARES:
        partitions = partitions_of(size, q_max, f)
        if partitions not in tried:
            cumulated = cdt_of_partitions(utilities, expected, partitions)
            wanted = max(share * size / partitions, 1e-12)
            tried[partitions] = float(cumulated[:, low].min()) / wanted
        if tried[partitions] >= 1.0:
            return f
        if tried[partitions] > best + 1e-12:
            best_f, best = f, tried[partitions]
    return best_f

"""The stable order of times that are nearly, or in no way, in order."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model.batch import Int64Array

_FEW_ROWS = 512


def stable_order(times_ns: Int64Array) -> Int64Array:
    """Return the positions by time, ties as they stand, shape (rows,): a stable `argsort`.

    Of many times (time, position) packed into one integer goes through NumPy's vectorised sort,
    where that fits. It takes half as long as a stable argsort, which is quicker for a few runs in
    order only: those it finds, and merges.
    """
    rows = len(times_ns)
    if rows > _FEW_ROWS:
        first_ns, last_ns = int(np.minimum.reduce(times_ns)), int(np.maximum.reduce(times_ns))
        bits = rows.bit_length()
        if last_ns - first_ns < 1 << (63 - bits):
            packed = times_ns - first_ns
            packed <<= bits
            packed |= np.arange(rows)
            packed.sort()
            packed &= (1 << bits) - 1
            return packed
    return times_ns.argsort(kind="stable")

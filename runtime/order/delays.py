"""Quantiles of delays, in steps of a sixteenth."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.state import Fields

_STEPS = 16  # to each doubling
_BINS = 64 * _STEPS


class Delays:
    """Histogram of delays; a quantile is at most a sixteenth too large.

    It takes 8 KiB, however many delays there are. Bins are computed exactly, so all hosts agree.
    """

    STATE = Fields("_counts")

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, dtype=np.int64)

    def add(self, delay_ns: Int64Array) -> None:
        """Count delays, shape (rows,), each > 0."""
        if len(delay_ns):
            part, doublings = np.frexp(delay_ns.astype(np.float64))  # part in [1/2, 1)
            bins = (doublings - 1) * _STEPS + ((part - 0.5) * (2 * _STEPS)).astype(np.int64)
            self._counts += np.bincount(bins, minlength=_BINS)

    def quantile_ns(self, q: float) -> int:
        """Return the q-quantile of the delays, 0 < q < 1; 0 without any."""
        total = int(self._counts.sum())
        if total == 0:
            return 0
        upto = np.cumsum(self._counts)
        place = int(upto.searchsorted(q * total))
        doublings, step = divmod(min(place, _BINS - 1), _STEPS)
        return ((1 << doublings) * (_STEPS + step + 1)) // _STEPS

"""Poly-lines: when each type releases a window, and at which chance."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.closing.policy import FloatArray
from slackwater.runtime.closing.spans import Spans, spans_at
from slackwater.runtime.closing.tables import Tables
from slackwater.runtime.model import Int64Array

_PAIRS_AT_ONCE = 1 << 20  # pairs of a window and a type
_UNFORESEEN = 0.5
"""Chance of a row of a type that is silent for longer than all known waits. It says nothing of
whether rows are held up, or the type has gone; it is not a reason to wait."""


class Lines:
    """Estimates of all types, for one bound.

    Args:
        tables: tables of all lines; None if there are no estimates yet.
        bound: the largest chance allowed, above 0.
        of_type: shape (types,), the line of each type; below 0: no line yet.
    """

    def __init__(self, tables: Tables | None, bound: float, of_type: Int64Array) -> None:
        self._tables = tables
        self._released = None if tables is None else tables.released(bound)
        self._of_type = of_type

    @property
    def entries(self) -> int:
        """Number of entries of the poly-lines. Source: [probslack] Table 1."""
        if self._tables is None or self._released is None:
            return 0
        return self._tables.edges(self._released)

    def ranges(
        self, types: Int64Array, alpha_ns: Int64Array
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return the ranges of β in which types release windows; see `Tables.ranges`."""
        which = self._of_type[types]
        known = np.flatnonzero(which >= 0)
        if self._tables is None or self._released is None or not len(known):
            return known[:0], known[:0], known[:0]
        index, from_ns, until_ns = self._tables.ranges(
            self._released, which[known], alpha_ns[known]
        )
        return known[index], from_ns, until_ns

    def chances(self, spans: Spans, ends_ns: Int64Array, at_ns: Int64Array) -> FloatArray:
        """Return the chance that each window misses a row: 1 − Π (1 − P_c).

        Args:
            spans: the spans that contain the ticks.
            ends_ns: shape (windows,), the ends of the windows.
            at_ns: shape (windows,), the ticks at which they close.

        Returns:
            Shape (windows,); NaN where a type that counts has no line yet.
        """
        types = int(spans.types[-1]) + 1
        chances = np.empty(len(ends_ns))
        step = max(_PAIRS_AT_ONCE // types, 1)
        for begin in range(0, len(ends_ns), step):
            part = slice(begin, begin + step)
            chances[part] = 1.0 - self._complete(spans, ends_ns[part], at_ns[part], types)
        return chances

    def _complete(
        self, spans: Spans, ends_ns: Int64Array, at_ns: Int64Array, types: int
    ) -> FloatArray:
        type_of = np.repeat(np.arange(types), len(ends_ns))
        at_ns, of_ns = np.tile(at_ns, types), np.tile(ends_ns, types)
        span = spans_at(spans, type_of, at_ns)
        open_still = np.flatnonzero(spans.newest_ns[span] < of_ns)
        which = self._of_type[type_of[open_still]] if len(self._of_type) else open_still * 0 - 1
        known_ns = spans.known_ns[span[open_still]]
        alpha_ns, beta_ns = of_ns[open_still] - known_ns, at_ns[open_still] - known_ns
        missing = np.zeros(len(type_of))
        missing[open_still] = np.nan
        if self._tables is not None:
            known = np.flatnonzero(which >= 0)
            chances = self._tables.chance(which[known], alpha_ns[known], beta_ns[known])
            longer = self._tables.is_longer(which[known], beta_ns[known])
            missing[open_still[known]] = np.where(longer, np.maximum(chances, _UNFORESEEN), chances)
        # Multiplied one by one: a chance must not depend on how many are computed together.
        complete: FloatArray = np.cumprod(1.0 - missing.reshape(types, -1), axis=0)[-1]
        return complete

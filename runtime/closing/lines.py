"""From which β on each type lets a window go, asked for many types at once."""

from __future__ import annotations

import numpy as np

from runtime.closing.histograms import Histograms, PolyLine
from runtime.closing.policy import FloatArray
from runtime.closing.spans import Spans, spans_at
from runtime.closing.tables import Tables
from runtime.model import BoolArray, Int64Array

_PAIRS_AT_ONCE = 1 << 20  # of a window and a type


class Lines:
    """The poly-lines of all types, for one bound.

    Args:
        histograms: of each line.
        tables: of them all; None: too large, then entries are computed when they are asked for.
        bound: what the chance may be, above 0.
        of_type: shape (types,), which line each type has; below 0: none yet.
    """

    def __init__(
        self,
        histograms: list[Histograms],
        tables: Tables | None,
        bound: float,
        of_type: Int64Array,
    ) -> None:
        self._histograms = histograms
        self._of_type = of_type
        self._tables = tables
        self._read: Int64Array | None = None  # off the tables
        self._lines = [PolyLine(one, bound) for one in histograms] if tables is None else []
        self._bound = bound

    def __bool__(self) -> bool:
        return bool(self._histograms)

    @property
    def entries(self) -> int:
        """How many entries the poly-lines have. Source: [probslack] Table 1."""
        if self._tables is None or self._read is None:
            return sum(one.entries for one in self._lines)
        return self._tables.corners(self._read)

    def least_beta_ns(
        self, types: Int64Array, alpha_ns: Int64Array
    ) -> tuple[Int64Array, BoolArray]:
        """Return the β from which on each type lets go, and whether it ever does; both (n,)."""
        which = self._of_type[types]
        if self._tables is not None:
            if self._read is None:
                self._read = self._tables.poly_lines(self._bound)
            return self._tables.least_beta_ns(self._read, which, alpha_ns), which >= 0
        least = np.zeros(len(types), dtype=np.int64)
        for one, mine in _of_each(which, len(self._lines)):
            least[mine] = self._lines[one].least_beta_ns(alpha_ns[mine])
        return least, which >= 0

    def chances(self, spans: Spans, ends_ns: Int64Array, at_ns: Int64Array) -> FloatArray:
        """Return the chance that windows that close now miss something: 1 − Π (1 − P_c).

        Args:
            spans: that the ticks lie in.
            ends_ns: shape (windows,), of the windows.
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
        missing[open_still] = np.where(which >= 0, self._chance(which, alpha_ns, beta_ns), np.nan)
        # Multiplied one by one: it must not depend on how many are asked for together.
        complete: FloatArray = np.cumprod(1.0 - missing.reshape(types, -1), axis=0)[-1]
        return complete

    def _chance(self, which: Int64Array, alpha_ns: Int64Array, beta_ns: Int64Array) -> FloatArray:
        if self._tables is not None:
            return self._tables.chance(which, alpha_ns, beta_ns)
        chances = np.zeros(len(which))
        for one, mine in _of_each(which, len(self._histograms)):
            histograms = self._histograms[one]
            chances[mine] = histograms.chance(histograms.classes(alpha_ns[mine]), beta_ns[mine])
        return chances


def _of_each(which: Int64Array, lines: int) -> list[tuple[int, Int64Array]]:
    """Return for each line that is asked for the indices at which it is."""
    order = np.argsort(which, kind="stable")
    bounds = np.searchsorted(which[order], np.arange(lines + 1))
    return [
        (one, order[bounds[one] : bounds[one + 1]])
        for one in np.flatnonzero(np.diff(bounds)).tolist()
    ]

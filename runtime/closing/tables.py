"""P_miss of several types in one array: all classes of α, all ticks of β, each asked in one step.

```
line 0   class 0  [β: low … high]      line 1   class 0  [β: low … high]
         class 1  [.. .. .. .. .]               class 1  [.. .. .. .. .]
         …                                      …
```
"""

from __future__ import annotations

import numpy as np

from runtime.closing.histograms import NEVER_NS, ROUNDING, Histograms
from runtime.closing.policy import FloatArray
from runtime.model import Int64Array

MOST_CELLS = 1 << 20
"""Larger tables are not kept: what is asked for is computed."""


class Tables:
    """The chances of all lines together.

    Args:
        lines: the histograms of each; all with one tick, and each with a table (`Histograms`).

    Source: [probslack] §3.1, *P_miss caching*: the whole area of Fig. 4 for each type, and the
    poly-line of any bound read off it in one step, where Listing 5 goes along it.
    """

    def __init__(self, lines: list[Histograms]) -> None:
        self.lines = lines
        self._tick_ns = lines[0].tick_ns
        ranges = np.array([one.range_ticks() for one in lines])  # (lines, 2)
        self._low, self._high = ranges[:, 0], ranges[:, 1]
        rows = np.array([len(one.low_ns) + 1 for one in lines])
        self._first_row = np.cumsum(rows) - rows  # (lines,)
        widths = np.repeat(self._high - self._low + 1, rows)
        self._row_start = np.cumsum(widths) - widths  # (rows,)
        self._row_low = np.repeat(self._low, rows)
        self._cells: FloatArray = np.concatenate([one.table().ravel() for one in lines])
        low_ns = np.concatenate([one.low_ns for one in lines])
        self._distinct_ns, rank = np.unique(low_ns, return_inverse=True)
        self._base = len(self._distinct_ns) + 1
        self._keys = np.repeat(np.arange(len(lines)) * self._base, rows - 1) + rank
        self._first_key = self._first_row - np.arange(len(lines))

    @staticmethod
    def of(lines: list[Histograms]) -> Tables | None:
        """Return the tables of some lines; None where they would be too large."""
        cells = [one.cells() for one in lines]
        if not all(cells) or sum(cells) > MOST_CELLS:
            return None
        return Tables(lines)

    def classes(self, which: Int64Array, alpha_ns: Int64Array) -> Int64Array:
        """Return the class of each α in its line (`Histograms.classes`); all of shape (n,)."""
        if len(self.lines) == 1:
            return self.lines[0].classes(alpha_ns)
        rank = np.searchsorted(self._distinct_ns, alpha_ns, side="left")
        found: Int64Array = np.searchsorted(self._keys, which * self._base + rank)
        classes: Int64Array = found - self._first_key[which]
        return classes

    def chance(self, which: Int64Array, alpha_ns: Int64Array, beta_ns: Int64Array) -> FloatArray:
        """Return P_miss of each α and β in its line (`Histograms.chance`); all of shape (n,)."""
        row = self._first_row[which] + self.classes(which, alpha_ns)
        low = self._low[which]
        beta = np.clip(beta_ns // self._tick_ns, low, self._high[which]) - low
        found: FloatArray = self._cells[self._row_start[row] + beta]
        return found

    def poly_lines(self, bound: float) -> Int64Array:
        """Return the least β of each class of each line, as `PolyLine` has them; shape (rows,)."""
        waits = np.add.reduceat(
            (self._cells > bound + ROUNDING).view(np.int8), self._row_start, dtype=np.int64
        )
        return np.where(waits > 0, (self._row_low + waits) * self._tick_ns, NEVER_NS)

    def least_beta_ns(
        self, poly_lines: Int64Array, which: Int64Array, alpha_ns: Int64Array
    ) -> Int64Array:
        """Return the least β of each α in its line; shape (n,)."""
        row = self._first_row[which] + self.classes(which, alpha_ns)
        least: Int64Array = poly_lines[row]
        return least

    def corners(self, poly_lines: Int64Array) -> int:
        """Return how many entries these poly-lines have: classes whose β is not the last one's."""
        changes = poly_lines[1:] != poly_lines[:-1]
        changes[self._first_row[1:] - 1] = False
        return int(changes.sum())

"""Tables of chances: all types, classes of α and cells of β, in one array.

```
line 0   class 0  [β: low … high]      line 1   class 0  [β: low … high]
         class 1  [.. .. .. .. .]               class 1  [.. .. .. .. .]
         …                                      …
released, by a bound: ###......###                   # small enough: two ranges of β
```
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.runtime.closing.histograms import ROUNDING, Histograms
from slackwater.runtime.closing.policy import FloatArray
from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.ranges import unfold

MOST_CELLS, MOST_OF_LINE, FEWEST_OF_LINE = 1 << 20, 1 << 16, 1 << 12
"""Most cells of all lines together, and most and fewest of one: above, cells of β are longer."""
NEVER_NS, FOR_EVER_NS = -(2**62), 2**62
"""Before and after every β."""


class Released(NamedTuple):
    """Ranges of β in which each class of α may close, ascending.

    Attributes:
        first: shape (rows + 1,), the first range of each class of each line.
        from_ns, until_ns: shape (ranges,), β in [from, until); NEVER_NS and FOR_EVER_NS at the
            ends.
    """

    first: Int64Array
    from_ns: Int64Array
    until_ns: Int64Array


class Tables:
    """Chances of all lines together.

    Args:
        lines: the histograms of each, at least one; all with one tick.

    Source: [probslack] §3.1, *P_miss caching*: the whole area of Fig. 4 for each type. The
    poly-lines of any bound are read off in one step, where Listing 5 follows the edge.
    """

    def __init__(self, lines: list[Histograms]) -> None:
        most = max(min(MOST_CELLS // len(lines), MOST_OF_LINE), FEWEST_OF_LINE)
        cells = [line.cells_ns(most) for line in lines]
        sizes = np.array([len(of_line) for of_line in cells])
        self._lines = lines
        self._cells_ns = np.concatenate(cells)
        self._first_cell = np.cumsum(sizes) - sizes  # (lines,)
        rows = np.array([len(line.low_ns) + 1 for line in lines])
        self._first_row = np.cumsum(rows) - rows  # (lines,)
        self._line_of_row = np.repeat(np.arange(len(lines)), rows)
        self._row_start = np.cumsum(sizes.repeat(rows)) - sizes.repeat(rows)  # (rows,)
        chances = [line.chances(at) for line, at in zip(lines, cells, strict=True)]
        waits = [
            line.waits(at, chance) for line, at, chance in zip(lines, cells, chances, strict=True)
        ]
        self._waits: FloatArray = np.concatenate([wait.ravel() for wait in waits])
        stated = [line.stated(chance).ravel() for line, chance in zip(lines, chances, strict=True)]
        self._chances: FloatArray = np.concatenate(stated)
        self._longest_ns = np.array([of_line[-1] for of_line in cells])  # (lines,)
        self._is_conditional = np.array([line.conditional for line in lines])
        self._alphas = _Ranks(np.concatenate([line.low_ns for line in lines]), rows - 1)
        self._betas = _Ranks(self._cells_ns, sizes)

    def _rows(self, which: Int64Array, alpha_ns: Int64Array) -> Int64Array:
        rows: Int64Array = self._first_row[which] + self._alphas.below(which, alpha_ns)
        return rows

    def chance(self, which: Int64Array, alpha_ns: Int64Array, beta_ns: Int64Array) -> FloatArray:
        """Return the chance of each α and β in its line; all of shape (n,)."""
        cell = np.maximum(self._betas.below(which, beta_ns + 1) - 1, 0)
        chances: FloatArray = self._chances[self._row_start[self._rows(which, alpha_ns)] + cell]
        return chances

    def is_longer(self, which: Int64Array, beta_ns: Int64Array) -> BoolArray:
        """Return where β is longer than all known waits of its line.

        All of shape (n,).
        """
        longer: BoolArray = (beta_ns >= self._longest_ns[which]) & self._is_conditional[which]
        return longer

    def released(self, bound: float) -> Released:
        """Return the ranges in which the chance is at most `bound`, above 0.

        Source: the grey area of [probslack] Fig. 4, of which Listing 5 keeps the edge: for each α
        the ranges of β outside it. One range if the chance falls with β.
        """
        good = self._waits <= bound + ROUNDING
        is_first = np.zeros(len(good), dtype=np.bool_)
        is_first[self._row_start] = True
        begins = np.flatnonzero(good & (is_first | ~np.append(True, good[:-1])))
        ends = np.flatnonzero(good & np.append(is_first[1:] | ~good[1:], True))
        row = np.searchsorted(self._row_start, begins, side="right") - 1
        # All rows of a line have the same cells, so this shift turns a place into a cell.
        shift = self._first_cell[self._line_of_row[row]] - self._row_start[row]
        from_ns = np.where(is_first[begins], NEVER_NS, self._cells_ns[begins + shift])
        is_last = np.append(is_first[1:], True)[ends]
        after = np.minimum(ends + 1 + shift, len(self._cells_ns) - 1)
        until_ns = np.where(is_last, FOR_EVER_NS, self._cells_ns[after])
        first = np.searchsorted(row, np.arange(len(self._row_start) + 1), side="left")
        return Released(first, from_ns, until_ns)

    def ranges(
        self, released: Released, which: Int64Array, alpha_ns: Int64Array
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return the ranges of β in which each α of a line may close.

        Args:
            released: the ranges of all classes.
            which: numbers of lines, shape (n,).
            alpha_ns: α of each line, shape (n,).

        Returns:
            All of shape (ranges,): the index of its α, the first β and the end; those of an α
            ascending.
        """
        rows = self._rows(which, alpha_ns)
        index, number = unfold(
            released.first[rows], released.first[rows + 1] - released.first[rows]
        )
        return index, released.from_ns[number], released.until_ns[number]

    def edges(self, released: Released) -> int:
        """Return the number of distinct ranges, over all lines, that do not begin at once."""
        rows = np.repeat(np.arange(len(self._row_start)), np.diff(released.first))
        columns = (self._line_of_row[rows], released.from_ns, released.until_ns)
        later = np.stack(columns, axis=1)[released.from_ns > NEVER_NS]
        return len(np.unique(later, axis=0))


class _Ranks:
    """Ranks of values in many lines, computed in one step.

    Args:
        values: the values of each line, ascending; a line follows the line before.
        sizes: shape (lines,), the number of values of each.
    """

    def __init__(self, values: Int64Array, sizes: Int64Array) -> None:
        self._distinct, rank = np.unique(values, return_inverse=True)
        self._base = len(self._distinct) + 1
        self._keys = np.repeat(np.arange(len(sizes)) * self._base, sizes) + rank
        self._first = np.cumsum(sizes) - sizes

    def below(self, which: Int64Array, values: Int64Array) -> Int64Array:
        """Return how many values of its line are below each value; all of shape (n,)."""
        rank = np.searchsorted(self._distinct, values, side="left")
        if len(self._first) == 1:
            return rank
        places: Int64Array = np.searchsorted(self._keys, which * self._base + rank)
        return places - self._first[which]

"""Fitting: which rows an estimate uses, and when it is renewed.

```
rows       0 ........ T ........ 2T ........ 3T
jumping    counts ----| fits, forgets       |        [probslack] Listing 4
sliding    fits from the last T rows, at every eighth of T
first      both fit at FIRST, 2·FIRST, 4·FIRST … rows until T have been there
```
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from slackwater.runtime.closing.disorder import Needs
from slackwater.runtime.closing.histograms import Histograms
from slackwater.runtime.closing.lines import Lines
from slackwater.runtime.closing.tables import Tables
from slackwater.runtime.model import START_NS, Int64Array
from slackwater.runtime.model.state import Fields

NO_GAP = -1
"""Gap of the first event of a type."""
LEAST = 32
"""Fewest events of an estimate: with fewer, only an event past a window's end makes it sure."""
_MOST_RARE = 256
"""Most types whose last rows get histograms each: with more such types they share them."""
_LONGEST_OF = 16  # fits of which the longest need counts: a single fit may miss a rare delay
_AHEAD = 8  # a delay longer than all known counts for an eighth more, until the next fit
_RENEWED = 20  # once the budget is spent, estimates may be renewed after T/20 rows


@dataclass(frozen=True)
class FitSettings:
    """Settings of the estimates.

    Attributes:
        rows: T, the number of rows of an estimate, over all types.
        first: the number of rows of the first estimate; `rows` for [probslack] as it is.
        sliding: whether estimates use the last T rows and are renewed often; else each T rows,
            once.
        together: whether all types share histograms.
        tick_ns: the resolution of clocks.
        at_most_ns, conditional: settings of `Histograms`.
    """

    rows: int
    first: int
    sliding: bool
    together: bool
    tick_ns: int
    at_most_ns: int | None = None
    conditional: bool = True


Sample = tuple[Int64Array, Int64Array, Int64Array]
"""Three values of each row, all of shape (rows,)."""


class Fitting:
    """Rows of the estimates, and when they are due; a subclass estimates in `_make`.

    Source: [probslack] Listing 4. Differs: histograms are made of all rows at once when they are
    due, which costs a sort, and no look-up for each row. A spent budget renews them after T/20 rows
    (Listing 3, line 9, says after T timepoints: with the paper's rates, the same).
    """

    STATE = Fields("_kept", "rows", "_full", "_added")

    def __init__(self, settings: FitSettings) -> None:
        self._settings = settings
        self._eighth = max(settings.rows // 8, 1)
        self._kept: list[Sample] = []
        self.rows = 0  # since the last reset
        self._added = 0  # since the beginning
        self._before = 0  # the same, before rows were added last
        self._full = False  # whether a fit of T rows has been made
        self._twentieth = max(settings.rows // _RENEWED, 1)
        self.renewable_from = self._twentieth

    def _make(self, sample: Sample) -> None:
        """Estimate from rows, at least one."""
        raise NotImplementedError

    def next_due(self, sample: Sample, first: int, *, marked: bool) -> int:
        """Return the row of a sample at which estimates may change next.

        Args:
            sample: the rows. Those before `first` have been added.
            first: the next row to add; the result is this row or a later one.
            marked: whether each T/20 counts, or only the first.
        """
        del sample
        return first + self._rows_till_due(marked=marked) - 1

    def _rows_till_due(self, *, marked: bool) -> int:
        """Return after how many more rows `fit_if_due` may act: > 0."""
        twentieth = self._twentieth
        mark = (self.rows // twentieth + 1) * twentieth if marked else twentieth
        marks = [mark, self._settings.rows]
        if self._settings.sliding:
            marks.append((self.rows // self._eighth + 1) * self._eighth)
        if not self._full:
            marks.append(self._early_mark(self.rows + 1))
        return min(mark for mark in marks if mark > self.rows) - self.rows

    def _early_mark(self, rows: int) -> int:
        mark = self._settings.first
        while mark < rows:
            mark *= 2
        return mark

    def add(self, sample: Sample, first: int, last: int) -> None:
        """Add rows [first, last) of a sample: until a fit is due, or more."""
        self._before = self.rows
        if last > first:
            part = slice(first, last)
            self._kept.append((sample[0][part], sample[1][part], sample[2][part]))
            self.rows += last - first
            self._added += last - first

    def _passed(self, every: int) -> bool:
        return self.rows // every > self._before // every

    @property
    def is_marked(self) -> bool:
        """Whether the rows added last completed another T/20."""
        return self._passed(self._twentieth)

    def fit_if_due(self, *, spent: bool) -> bool:
        """Fit again if the rows added last made it due; return whether they did.

        Args:
            spent: whether the budget is spent.
        """
        if spent and self._before < self.renewable_from <= self.rows:
            return self.renew()
        if self.rows >= self._settings.rows:
            self._full = True
            self._fit(self._settings.rows)
            if self._settings.sliding:
                self.rows -= self._eighth
            else:
                self._reset()
            return True
        if self._settings.sliding and self._full and self._passed(self._eighth):
            self._fit(self._settings.rows)
            return True
        if not self._full and self._before < self._early_mark(self._before + 1) <= self.rows:
            self._fit(self.rows)
            return True
        return False

    def renew(self) -> bool:
        """Fit again from the latest rows, since the budget is spent; return True."""
        self._fit(self.renewable_from if self._settings.sliding else self.rows)
        self._reset()
        self._full = True
        return True

    def _reset(self) -> None:
        self._kept.clear()
        self.rows = 0

    def _fit(self, last: int) -> None:
        whole = [np.concatenate([part[n] for part in self._kept])[-last:] for n in range(3)]
        sample = (whole[0], whole[1], whole[2])
        if self._settings.sliding:
            self._kept = [sample]
        self._make(sample)


class HistogramFitting(Fitting):
    """Histograms of g and d, by type. The sample is (types, g, d).

    Source: [probslack] Listing 4. Differs: a type with few rows in a fit uses its own earlier rows
    too. With too few of these, a conditional chance has no histogram, and the type is waited for. A
    type without a row among T counts as gone, and uses those few.
    """

    STATE = Fitting.STATE + Fields(
        "histograms", "_of_type", "_own", elements={"histograms": Histograms}
    )

    def __init__(self, settings: FitSettings) -> None:
        super().__init__(settings)
        self.histograms: list[Histograms] = []  # the first is of all types together
        self._of_type = np.empty(0, dtype=np.int64)  # (types,): which of these; below 0: none
        self._own = OwnRows()
        self._tables: Tables | None = None

    def lines(self, types: int, bound: float) -> Lines:
        """Return the poly-lines of `types` types, for a bound of the chance of each."""
        of_type = np.full(types, 0 if self.histograms and self._shares else -1)
        of_type[: len(self._of_type)] = self._of_type
        if self._tables is None and self.histograms:
            self._tables = Tables(self.histograms)
        return Lines(self._tables, bound, of_type)

    def _make(self, sample: Sample) -> None:
        types, gaps, delays = sample
        places = self._own.take(types, gaps, delays, self._added)
        if not (gaps != NO_GAP).any():
            return
        self.histograms, self._tables = [self._of(gaps, delays)], None
        self._of_type = np.full(len(places), 0 if self._shares or len(places) == 1 else -1)
        if self._settings.together or len(places) == 1:
            return
        for kind, mine in enumerate(places):
            if len(mine) >= LEAST:
                self._of_type[kind] = len(self.histograms)
                self.histograms.append(self._of(gaps[mine], delays[mine]))
        if not self._shares:
            self._make_of_few(gaps)

    @property
    def _shares(self) -> bool:
        # Then a type with too few rows of its own uses the histograms of all types.
        return self._settings.together or not self._settings.conditional

    def _make_of_few(self, all_gaps: Int64Array) -> None:
        """Make histograms of types with few rows in the fit, of each type's last rows."""
        few = [
            kind
            for kind in np.flatnonzero(self._of_type < 0).tolist()
            if len(self._own.of(kind)[1]) >= LEAST
            or self._own.silent(kind, self._added) >= self._settings.rows
        ]
        groups = [[kind] for kind in few] if len(few) <= _MOST_RARE else [few]
        for group in groups:
            samples = [self._own.of(kind) for kind in group]
            gaps = np.concatenate([of_kind[0] for of_kind in samples])
            if not (gaps != NO_GAP).any():
                gaps = all_gaps
            delays = np.concatenate([of_kind[1] for of_kind in samples])
            self._of_type[group] = len(self.histograms)
            self.histograms.append(self._of(gaps, delays))

    def _of(self, gaps: Int64Array, delays: Int64Array) -> Histograms:
        return Histograms.of(
            gaps[gaps != NO_GAP],
            delays,
            tick_ns=self._settings.tick_ns,
            at_most_ns=self._settings.at_most_ns,
            conditional=self._settings.conditional,
        )


class NeedsFitting(Fitting):
    """Needs of all types together. The sample is (types, event time, tick).

    A delay longer than all known counts from its own row on, not from the next fit. Until that fit
    it counts for an eighth more: where delays grow, longer ones follow at once.
    """

    STATE = Fitting.STATE + Fields("needs", "_longest", elements={"needs": Needs})

    def __init__(self, settings: FitSettings, *, size_ns: int | None = None) -> None:
        super().__init__(settings)
        self._size_ns = size_ns
        self.needs: Needs | None = None
        # A spent budget renews nothing here: its few rows may all be of one moment.
        self.renewable_from = 2**62
        self._longest: list[int] = []  # longest needs of the last fits

    def _make(self, sample: Sample) -> None:
        self.needs = Needs.of(
            sample[1], sample[2], at_most_ns=self._settings.at_most_ns, size_ns=self._size_ns
        )
        self._longest = [*self._longest, self.needs.longest_ns][-_LONGEST_OF:]
        self.needs.longest_ns = max(self._longest)

    def next_due(self, sample: Sample, first: int, *, marked: bool) -> int:  # noqa: D102
        due = super().next_due(sample, first, marked=marked)
        if self.needs is None:
            return due
        is_longer = self._delays_ns(sample, first, due) > self.needs.longest_ns
        return first + int(np.argmax(is_longer)) if is_longer.any() else due

    def add(self, sample: Sample, first: int, last: int) -> None:  # noqa: D102
        super().add(sample, first, last)
        longest_ns = int(self._delays_ns(sample, first, last).max(initial=START_NS))
        if self.needs is not None and longest_ns > self.needs.longest_ns:
            self.needs.longest_ns = self._most_of(longest_ns + abs(longest_ns) // _AHEAD)

    def _delays_ns(self, sample: Sample, first: int, last: int) -> Int64Array:
        delays_ns = sample[2][first:last] - sample[1][first:last]
        most_ns = self._settings.at_most_ns
        return delays_ns if most_ns is None else np.minimum(delays_ns, most_ns)

    def _most_of(self, wait_ns: int) -> int:
        most_ns = self._settings.at_most_ns
        return wait_ns if most_ns is None else min(wait_ns, most_ns)


MOST_ROWS = 128
"""Most rows kept of a type."""
_NOTHING = np.empty(0, dtype=np.int64)


class OwnRows:
    """Last gaps and delays of each type, kept over all fits.

    ```
    fits     |------ T ------|------ T ------|------ T ------|
    type a   aaaaaaaaaaaaaaaa aaaaaaaaaaaaaaa aaaaaaaaaaaaaaa   each fit has enough of its own
    type b         b       b      b        b        b     b     no fit has: the last rows of all
    ```
    Rows of other types say nothing of a type that comes later than they do, or seldom.
    """

    STATE = Fields("_last", "_gaps", "_delays")

    def __init__(self) -> None:
        self._last = _NOTHING  # (types,), its number among all rows, from 1 on; 0 before any
        self._gaps: list[Int64Array] = []
        self._delays: list[Int64Array] = []

    @property
    def types(self) -> int:
        """Number of types so far."""
        return len(self._last)

    def take(
        self, types: Int64Array, gaps: Int64Array, delays: Int64Array, added: int
    ) -> list[Int64Array]:
        """Add the rows of a fit; some may have been in the fit before.

        Args:
            types: shape (rows,), the types of the last rows.
            gaps: gaps of the rows, shape (rows,).
            delays: delays of the rows, shape (rows,).
            added: the number of rows so far, with these.

        Returns:
            The places of the rows of each type.
        """
        more = int(types.max(initial=-1)) + 1 - self.types
        if more > 0:
            self._last = np.append(self._last, np.zeros(more, dtype=np.int64))
            self._gaps += [_NOTHING] * more
            self._delays += [_NOTHING] * more
        order = np.argsort(types, kind="stable")
        bounds = np.searchsorted(types[order], np.arange(self.types + 1))
        places = [order[a:b] for a, b in pairwise(bounds.tolist())]
        for kind in np.flatnonzero(np.diff(bounds)).tolist():
            number = added - len(types) + 1 + places[kind]
            new = places[kind][number > self._last[kind]][-MOST_ROWS:]
            self._gaps[kind] = np.concatenate([self._gaps[kind], gaps[new]])[-MOST_ROWS:]
            self._delays[kind] = np.concatenate([self._delays[kind], delays[new]])[-MOST_ROWS:]
            self._last[kind] = number[-1]
        return places

    def of(self, kind: int) -> tuple[Int64Array, Int64Array]:
        """Return the gaps and delays of a type."""
        return self._gaps[kind], self._delays[kind]

    def silent(self, kind: int, added: int) -> int:
        """Return how many rows of other types came since its last row."""
        return added - int(self._last[kind])

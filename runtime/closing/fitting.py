"""From rows to histograms: what is counted, over which rows, and when it is counted anew.

```
rows       0 ........ T ........ 2T ........ 3T
jumping    counts ----| fits, forgets       |        [probslack] Listing 4
sliding    fits from the last T rows, at every eighth of T
first      both fit at FIRST, 2·FIRST, 4·FIRST … rows until T have been there
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.closing.disorder import Needs
from slackwater.runtime.closing.histograms import Histograms
from slackwater.runtime.closing.lines import Lines
from slackwater.runtime.closing.own_rows import OwnRows
from slackwater.runtime.closing.tables import Tables
from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.state import Fields

NO_GAP = -1
"""The gap of the first event of a type."""
LEAST = 32
"""With fewer events of its own a type is not known: it is sure once an event says so."""
_MOST_RARE = 256
"""More types than that without enough rows in a fit share the histograms of their last rows."""
_LONGEST_OF = 16  # fits: what is late for longer than all rows of one may not be for those of more
_RENEWED = 20  # once the budget is spent, estimates may be renewed after a 20th of T


@dataclass(frozen=True)
class FitSettings:
    """When histograms are made.

    Attributes:
        rows: T, of how many rows histograms are made, over all types.
        first: after how many rows the first are; `rows` for [probslack] as it is.
        sliding: whether of the last T rows, often; else of each T rows, once.
        together: whether all types share histograms.
        tick_ns: the resolution of clocks.
        at_most_ns, conditional: see `Histograms`.
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
    """The rows that estimates are made of, and when. What is made of them is `_make`.

    Source: [probslack] Listing 4. Differs: histograms are made of the rows at once when they are
    due, which costs a sort, and no look-up for each row; a budget that is spent renews them after
    T/20 rows (Listing 3, line 9, says after T timepoints: with the paper's rates, the same).
    """

    STATE = Fields("_kept", "rows", "_full", "_added")

    def __init__(self, settings: FitSettings) -> None:
        self._settings = settings
        self._eighth = max(settings.rows // 8, 1)
        self._kept: list[Sample] = []
        self.rows = 0  # since the last reset
        self._added = 0  # since the beginning
        self._before = 0  # the same, before rows were added last
        self._full = False  # whether T rows have been there once
        self._twentieth = max(settings.rows // _RENEWED, 1)
        self.renewable_from = self._twentieth

    def _make(self, sample: Sample) -> None:
        """Make estimates of rows; at least one."""
        raise NotImplementedError

    def rows_till_due(self, *, marked: bool) -> int:
        """Return how many rows are to be added before `fit_if_due` may do something: > 0.

        Args:
            marked: whether each T/20 is waited for, or only the first.
        """
        twentieth = self._twentieth
        mark = (self.rows // twentieth + 1) * twentieth if marked else twentieth
        marks = [mark, self._settings.rows]
        if self._settings.sliding:
            marks.append((self.rows // self._eighth + 1) * self._eighth)
        if not self._full:
            marks.append(self._early_mark(self.rows + 1))
        return min(mark for mark in marks if mark > self.rows) - self.rows

    def _early_mark(self, rows: int) -> int:
        """Return the first of FIRST, 2·FIRST, … that is at least so many."""
        mark = self._settings.first
        while mark < rows:
            mark *= 2
        return mark

    def add(self, sample: Sample, first: int, last: int) -> None:
        """Take rows `first` … `last` − 1 of a sample: till something is due, or a few more."""
        self._before = self.rows
        if last > first:
            types, one, two = sample
            self._kept.append((types[first:last], one[first:last], two[first:last]))
            self.rows += last - first
            self._added += last - first

    def _passed(self, every: int) -> bool:
        """Return whether the rows added last have made another so many full."""
        return self.rows // every > self._before // every

    @property
    def is_marked(self) -> bool:
        """Whether the rows added last have made another T/20 full."""
        return self._passed(self._twentieth)

    def fit_if_due(self, *, spent: bool) -> bool:
        """Estimate anew if the rows added last made it due; return whether they did.

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
        """Estimate anew from what has come of late, the budget being spent; return True."""
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
    """Histograms of g and d, of each type. The sample is (types, g, d).

    Source: [probslack] Listing 4. Differs: a type with few rows in a fit has those of its own that
    came before; with too few of these, and given that nothing came, it has none and is waited for.
    One without a row among T counts as gone, and has those few.
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
        """Return the poly-lines of so many types, for a bound of the chance of each."""
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
        for one, mine in enumerate(places):
            if len(mine) >= LEAST:
                self._of_type[one] = len(self.histograms)
                self.histograms.append(self._of(gaps[mine], delays[mine]))
        if not self._shares:
            self._make_of_few(gaps)

    @property
    def _shares(self) -> bool:
        """Whether a type of which little is known has the histograms of all."""
        return self._settings.together or not self._settings.conditional

    def _make_of_few(self, all_gaps: Int64Array) -> None:
        """Make the histograms of types with few rows in the fit, of the last of each."""
        few = [
            one
            for one in np.flatnonzero(self._of_type < 0).tolist()
            if len(self._own.of(one)[1]) >= LEAST
            or self._own.silent(one, self._added) >= self._settings.rows
        ]
        groups = [[one] for one in few] if len(few) <= _MOST_RARE else [few]
        for group in groups:
            kept = [self._own.of(one) for one in group]
            gaps = np.concatenate([one[0] for one in kept])
            if not (gaps != NO_GAP).any():
                gaps = all_gaps
            delays = np.concatenate([one[1] for one in kept])
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
    """How late the last comes, of all types together. The sample is (types, event time, tick)."""

    STATE = Fitting.STATE + Fields("needs", "_longest", elements={"needs": Needs})

    def __init__(self, settings: FitSettings) -> None:
        super().__init__(settings)
        self.needs: Needs | None = None
        # The rows that came while the budget was spent may be a moment's: too few to tell.
        self.renewable_from = 2**62
        self._longest: list[int] = []  # of the last fits

    def _make(self, sample: Sample) -> None:
        self.needs = Needs.of(sample[1], sample[2], at_most_ns=self._settings.at_most_ns)
        self._longest = [*self._longest, self.needs.longest_ns][-_LONGEST_OF:]
        self.needs.longest_ns = max(self._longest)

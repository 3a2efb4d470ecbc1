"""Sequences of events: rows in the order of the stream, matches out.

```
rows ──▶ which events each is ──▶ those of each key to its matcher ──▶ what leaves, as rows
         (fits.py, whole batches)  (runtime/patterns)                  (leaving.py)
```
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Batch, GateRead, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.ground.contract import PlainOperator, Result
from slackwater.runtime.operators.ground.keys import KeyIndex, any_null
from slackwater.runtime.operators.ground.late_rows import Missed
from slackwater.runtime.operators.pattern.conditions import Conditions
from slackwater.runtime.operators.pattern.fits import Fits
from slackwater.runtime.operators.pattern.kept import Kept
from slackwater.runtime.operators.pattern.leaving import Leaving
from slackwater.runtime.operators.pattern.limits import too_many_matches, too_many_rows
from slackwater.runtime.operators.pattern.matchers import Events, Matchers
from slackwater.runtime.operators.pattern.numbering import EventNumbers, with_openers
from slackwater.runtime.operators.pattern.rows import Rows
from slackwater.runtime.operators.pattern.shedding import WindowShedding
from slackwater.runtime.operators.pattern.step import PatternStep
from slackwater.runtime.operators.pattern.values import Values
from slackwater.runtime.operators.pattern.what_if import Judged, Parts, Trial, judged
from slackwater.runtime.patterns.scopes import CountWindows, OpenedWindows
from slackwater.runtime.patterns.settings import Found, Limit, TooManyMatches, Worked
from slackwater.runtime.patterns.windowed import WindowMatcher

_MANY_KEYS = 1024
_MANY_ROWS = 65_536


class PatternMachine(PlainOperator):
    """The machine of a `PatternStep`.

    A late row is not looked at: it is counted in `late_dropped`. Rows with a null key are in no
    match. The stimulus time of a match is the latest of its events', and, if it waited for the end
    of its scope, of what moved the watermark there.

    Costs: rows that fit nothing some nanoseconds each, unless scopes count events: then these are
    counted for each key. Keys without rows are not looked at.

    Args:
        step: the pattern and its settings.
        most_kept_rows: rows held for matches to come, at most; and rows in the matches of one
            read.
    """

    STATE = Fields(
        "_keys",
        "_rows",
        "_matchers",
        "_most_keys",
        "_most_rows",
        "_looks_at",
        "_numbers",
        "_turn",
        "_events",
        "_shedding",
        "_passed_ns",
        "_missed",
        "_values",
    )

    def __init__(self, step: PatternStep, *, most_kept_rows: int) -> None:
        self._step = step
        self._most_kept_rows = most_kept_rows
        self._limit = Limit(most_kept_rows)
        self._worked = Worked()
        self._judging = replace(step.compiled(), many=self._hold_many, limit=self._limit)
        counted = None if step.shed is None else self._worked
        self._settings = replace(self._judging, worked=counted)
        self._every = step.scope.every if isinstance(step.scope, CountWindows) else 0
        self._opens = step.scope.asked if isinstance(step.scope, OpenedWindows) else -1
        self._shedding = self._begin_shedding()
        # Shedding needs positions in windows, so the number of each event among its key's.
        self._counts_all = step.counts_events or self._shedding is not None
        self._start()

    def _begin_shedding(self) -> WindowShedding | None:
        if self._step.shed is None:
            return None
        return WindowShedding(self._step, self._settings, self._windowed)

    def _hold_many(self, asked: int, turn: int, name: str, turns: list[int]) -> list[bool] | None:
        return self._conditions.hold_many(asked, turn, name, turns)

    def _windowed(self, code: int) -> WindowMatcher | None:
        return self._matchers.windowed(code)

    def _start(self) -> None:
        step = self._step
        self._fits = Fits(step.pattern.asked, type_column=step.type_column, step=step.name)
        self._rows = Rows()
        self._leaving = Leaving(step, self._rows)
        self._conditions = Conditions(step, self._rows)
        self._values = Values(step)
        self._keys = KeyIndex(len(step.keys))
        self._matchers = Matchers(
            self._settings,
            self._conditions.hold,
            names=self._values.names,
            is_one=not step.keys,
            learns=step.shed is not None and step.shed.ranks,
        )
        self._most_keys = _MANY_KEYS  # when there are more, finished keys are looked for
        self._most_rows = _MANY_ROWS  # when there are more rows, finished ones are looked for
        self._looks_at = self._most_kept_rows  # when there are more rows, they are checked
        self._numbers = EventNumbers()
        self._touched: set[int] = set()  # keys of this read
        self._events = 0  # events so far, where all are counted
        self._turn = 1  # the place in the stream of the next row that fits something
        self._passed_ns = START_NS
        self._missed = Missed(keeps=step.keeps_late)

    def work(self, released: GateRead, now_ns: int) -> Result:
        """Take rows; return the matches that they complete, or that are decided now.

        Raises:
            OperatorError: more rows are needed than may be kept, or these make too many matches.
        """
        self._limit.begin()
        dropped, kept, passed = self.late_dropped, self.comparisons, self.passed_over
        try:
            rows = self._processed(released, now_ns)
        except TooManyMatches:
            raise too_many_matches(self._step, self._most_kept_rows) from None
        return Result(  # the stimulus of a match is that of its last event, or of its end
            rows,
            released.frontier_ns,
            self._missed.take(),
            self.late_dropped - dropped,
            self.comparisons - kept,
            None if self._shedding is None else self.passed_over - passed,
        )

    def counts(self) -> dict[str, Any]:
        """Return counts: of shed rows and of work, or of bounds that were cut.

        Both have the counts of what waits for the end of a scope.
        """
        waiting = {} if self._step.leaves_with_rows else {"waiting": self.waiting}
        if self._shedding is not None:
            own = {"shed": self.shed, "comparisons": self.comparisons}
            return {**waiting, **own, "shedding": self._shedding.counts}
        drift = self._step.drift
        return {**waiting, **({} if drift is None else drift.counts(self.bounds_cut))}

    @property
    def late_dropped(self) -> int:  # noqa: D102 - see Operator
        return self._missed.dropped

    def _processed(self, released: GateRead, now_ns: int) -> Batch | None:
        late, in_order = released.late[0], released.ports[0]
        if late is not None and len(late):
            self._miss(late)
        if in_order is not None and len(in_order):
            in_order = self._on_time(in_order)
        matches: list[Found] = []
        if in_order is not None and len(in_order):
            if self._shedding is not None:
                self._shedding.look(in_order, now_ns)
            if self._shedding is not None and self._shedding.is_passing_over:
                matches = self._pass_over(in_order, self._shedding)
            else:
                matches = self._matched(in_order)
        self._passed_ns = max(self._passed_ns, released.watermark_ns)
        matches += self._matchers.decided(self._passed_ns)
        if self._shedding is not None:
            self._learn(self._shedding)
        matches.sort(key=lambda one: (one.time_ns, one.has_waited, one.turn, one.order))
        rows_out = self._leaving.rows_of(matches, released.watermark_stimulus_ns)
        self._forget()
        self._check_size()
        return rows_out

    @property
    def bounds_cut(self) -> int:
        """Rows so far whose own bound was more than the most; only with `drift=`."""
        return self._values.bounds_cut

    @property
    def shed(self) -> int:
        """Rows so far that no window of theirs kept."""
        return 0 if self._shedding is None else self._shedding.shed

    @property
    def comparisons(self) -> int:
        """The work so far of a pattern that sheds; see `Overload.kept`."""
        return 0 if self._shedding is None else self._shedding.kept

    @property
    def passed_over(self) -> int:  # noqa: D102 - rows, so far
        return 0 if self._shedding is None else self._shedding.passed_over

    def charge(self, took_ns: int, idle_ns: int) -> None:  # noqa: D102
        if self._shedding is not None:
            self._shedding.took(took_ns, idle_ns)

    def reckon_with(self, rest_ns: int) -> None:  # noqa: D102
        if self._shedding is not None:
            self._shedding.reckon_with(rest_ns)

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return max(len(self._rows), self._matchers.events_held)

    @property
    def waiting(self) -> int:
        """Windows, or ends of matches, that wait until nothing can forbid them any more."""
        return self._matchers.waiting

    def _on_time(self, batch: Batch) -> Batch:
        """Return the rows that come before the end of the stream."""
        if batch.event_time_ns.item(0) >= self._passed_ns:
            return batch
        is_late = batch.event_time_ns < self._passed_ns
        self._miss(batch.keep(is_late))
        return batch.keep(~is_late)

    def _miss(self, late: Batch) -> None:
        self._missed.drop(late, self._passed_ns)

    # -- rows in, matches out -----------------------------------------------------------

    def _with_keys(self, batch: Batch) -> Batch | None:
        nulls = any_null([batch.columns[name] for name in self._step.keys])
        if nulls is not None:
            batch = batch.keep(~nulls)
        return batch if len(batch) else None

    def _matched(self, came: Batch) -> list[Found]:
        """Take rows in order; return the matches that they complete."""
        if (batch := self._with_keys(came)) is None:
            return []
        places, kinds = self._fits.of(batch)
        if not self._counts_all:
            if not len(places):
                return []
            rows = batch.take(places)  # a copy, as the batch may be overwritten
            return self._matchers.take(self._events_of(rows, places, kinds, None, None))
        codes = self._keys.codes([batch.columns[name] for name in self._step.keys], len(batch))
        numbers = self._numbers.of(codes, len(self._keys))
        kept = None
        if self._shedding is not None:
            if self._shedding.is_in_gap and not self._shedding.is_passing_over:
                self._matchers.give_up(self._shedding.end_gap())
            of_kind = self._fits.of_kind
            times = batch.event_time_ns
            if not self._shedding.leaves_alone(self._events, times):
                events = np.arange(self._events, self._events + len(batch))
                kept = self._shedding.dropped(batch, codes, numbers, events, places, kinds, of_kind)
                self._touched |= set(np.unique(codes).tolist())
                chosen = kept.left(places)
                places, kinds = places[chosen], kinds[chosen]
        self._events += len(batch)
        if self._every:  # windows open with events that need not fit anything
            places, kinds = with_openers(places, kinds, (numbers - 1) % self._every == 0)
        matches: list[Found] = []
        if len(places):
            rows, codes, numbers = batch.take(places), codes.take(places), numbers.take(places)
            if kept is not None and self._step.shed_columns:
                known = [numbers, *kept.known.take(places, axis=1)]
                shown = dict(zip(self._step.shed_columns, known, strict=True))
                rows = rows.with_columns({**rows.columns, **shown})
            events_of = self._events_of(rows, places, kinds, codes, numbers)
            if kept is None or kept.is_whole:
                matches = self._matchers.take(events_of, kept)
            else:
                matches = self._matchers.take_kept(events_of, kept)
        if self._shedding is not None:
            self._settle(self._shedding, kept)
        return matches

    def _settle(self, shedding: WindowShedding, kept: Kept | None) -> None:
        if kept is not None:
            shedding.settle(kept)
        shedding.worked(self._worked.events)
        self._worked.events = 0

    def _pass_over(self, came: Batch, shedding: WindowShedding) -> list[Found]:
        """Count rows and do no more, unless a tried window has them."""
        if (batch := self._with_keys(came)) is None:
            return []
        times, matches = batch.event_time_ns, list[Found]()
        if not shedding.is_in_gap:
            shedding.begin_gap(times.item(0), self._judge)
            matches = self._matchers.give_up(times.item(0))
        if not shedding.pass_over(self._events, times):
            return matches + self._matched(batch)
        if self._every:  # windows open by the numbers of a key's events
            codes = self._keys.codes([batch.columns[name] for name in self._step.keys], len(batch))
            self._numbers.of(codes, len(self._keys))
        self._events += len(batch)
        return matches

    def _events_of(
        self,
        rows: Batch,
        places: Int64Array,
        kinds: Int64Array,
        codes: Int64Array | None,
        numbers: Int64Array | None,
    ) -> Events:
        """Return rows as events, which are remembered from now on."""
        turns = np.arange(self._turn, self._turn + len(rows))
        self._turn += len(rows)
        self._rows.add(turns, self._leaving.kept(rows))
        if numbers is None:
            numbers = turns
        if codes is None:
            codes = self._keys.codes([rows.columns[name] for name in self._step.keys], len(rows))
        of_kind = self._fits.of_kind
        opens = None
        if self._settings.drift is not None:
            pass  # where clocks may be off any event may be before the first one of its match
        elif self._opens >= 0:
            opens = np.array([self._opens in one for one in of_kind]).take(kinds)
        elif self._every:
            opens = (numbers - 1) % self._every == 0
        values = self._values.of(rows)
        return Events(rows, places, codes, numbers, turns, kinds, of_kind, opens, values)

    def _learn(self, shedding: WindowShedding) -> None:
        """Tell the shedder which events were in matches, and which windows are over."""
        hits, self._matchers.hits = self._matchers.hits, []
        if hits:
            self._touched |= shedding.hit(hits, self._rows)
        shedding.finish(sorted(self._touched), self._passed_ns, self._judge)
        self._touched = set()

    def _judge(self, trial: Trial) -> tuple[Judged, list[Parts]]:
        return judged(trial, self._judging, self._conditions.hold)

    # -- state --------------------------------------------------------------------------

    def _check_size(self) -> None:
        """Check that no more events are held than may be."""
        if len(self._rows) <= self._looks_at:
            return
        self._keep_rows()
        # Not for each read: its time is proportional to all rows.
        more = len(self._rows) + self._most_kept_rows // 8
        self._looks_at = max(more, self._most_kept_rows)
        if len(self._rows) > self._most_kept_rows:
            raise too_many_rows(self._step, len(self._rows), self._most_kept_rows)

    def _forget(self) -> None:
        """Forget what is over: rows as time passes, keys when most are over."""
        if self._passed_ns == END_NS:
            missed, cut = self._missed, self.bounds_cut
            self._start()
            self._passed_ns, self._missed = END_NS, missed
            self._values.bounds_cut = cut
            if self._shedding is not None:
                self._shedding.keep({})
            return
        if self._step.counts_events:
            if len(self._rows) > self._most_rows:
                self._keep_rows()
            return
        self._rows.forget_before(self._passed_ns - self._step.traits.reach_ns)
        if (len(self._keys) if self._counts_all else len(self._matchers.of_key)) > self._most_keys:
            self._keep_keys()

    def _keep_rows(self) -> None:
        """Drop rows that no matcher has, or that are over for a silent key."""
        held = self._matchers.turns_held()
        if self._shedding is not None:
            held.append(self._shedding.turns_tried())
        turns = sorted({turn for own in held for turn in own})
        # Only events end a scope of a number of events, so there no row is over as time passes.
        since_ns = (
            START_NS if self._step.counts_events else self._passed_ns - self._step.traits.reach_ns
        )
        self._rows.keep(np.array(turns, dtype=np.int64), since_ns=since_ns)
        self._most_rows = max(2 * len(turns), _MANY_ROWS)

    def _keep_keys(self) -> None:
        """Drop keys of which no event is in a match to come."""
        kept = self._matchers.codes_since(self._passed_ns - self._step.traits.reach_ns)
        self._most_keys = max(2 * len(kept), _MANY_KEYS)
        if not self._step.keys:
            return
        codes = np.array(kept, dtype=np.int64)
        moved = dict(zip(kept, self._keys.keep(codes).take(codes).tolist(), strict=True))
        self._matchers.keep(moved)
        if self._counts_all:
            self._numbers.keep(codes)
        if self._shedding is not None:
            self._shedding.keep(moved)

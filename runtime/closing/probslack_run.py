"""ProbSlack's run: rows in, closings out, decided for many rows and windows at once.

Estimates change with a fit that is due, or with a new type. Between two such rows, all that depends
on rows alone is computed for whole arrays: when each window may close, when it is sure, which rows
may be late. The budget depends on rows missed before, so `Settling` takes these results in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from slackwater.runtime.closing.aim import Aim
from slackwater.runtime.closing.budget import Budget
from slackwater.runtime.closing.calibration import Calibration, outcomes_of
from slackwater.runtime.closing.candidates import (
    Candidates,
    Scope,
    candidates_of,
    not_before_ends,
)
from slackwater.runtime.closing.disorder import candidates_in_disorder
from slackwater.runtime.closing.first_rows import FirstRows
from slackwater.runtime.closing.fitting import HistogramFitting, NeedsFitting
from slackwater.runtime.closing.ground import NOTHING, GroundRun, TypedRows, rows_of_types
from slackwater.runtime.closing.happenings import (
    Forced,
    Settled,
    Stretch,
    happenings_of,
    sure_of,
)
from slackwater.runtime.closing.lines import Lines
from slackwater.runtime.closing.policy import FloatArray
from slackwater.runtime.closing.settings import Settings
from slackwater.runtime.closing.settling import Settling
from slackwater.runtime.closing.spans import Spans, spans_of
from slackwater.runtime.closing.tracking import Tracked, latest_of, tracked_of
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model import END_NS, START_NS, Int64Array
from slackwater.runtime.model.state import Fields, restore, save

MOST_OPEN = 16_384
"""Most windows decided together."""
FEW_OPEN = 512
"""Windows decided together in a pause, at least."""
MOST_ROWS, LEAST_ROWS = 8_192, 2048
"""Most rows decided together; the fewer where the budget is almost spent."""
LEAST_OLDER, SHARE_OLDER = 8, 0.01
"""Events older than the newest of their type, and their share of all: above both is disorder."""
FAR_NS = 2**62
"""A time after all others; it may have a window's length added."""


@dataclass(frozen=True)
class Pause:
    """Place in a pause, in which windows close without a row.

    Attributes:
        open: the first open window.
        standing: the state, relative to that window and its time. Windows that begin with an equal
            state close alike while no row comes, if their ticks fall alike.
        early, denied: counts of the budget.
    """

    open: int
    standing: tuple[int, ...]
    early: int
    denied: int


class ProbSlackRun(GroundRun):
    """Run of ProbSlack over the windows of one aggregate.

    Args:
        windows: the windows of the aggregate.
        policy: settings of the run.

    Source: [probslack] Listings 1, 3, 4 and 5, for all ticks of a call at once.
    """

    STATE = GroundRun.STATE + Fields(
        "_is_watched",
        "_rows",
        "_behind",
        "_fitted",
        "_budget",
        "_aim",
        "_settling",
        "_calibration",
        "_newest_of",
        "_rowed",
        "_now_ns",
    )

    def __init__(self, windows: WindowEnds, policy: Settings) -> None:
        super().__init__(windows, tick_ns=policy.tick_ns, promised=policy.miss)
        self._policy = policy
        self._knowledge: _InOrder | _InDisorder = (
            _InDisorder(policy, windows) if policy.ordered is False else _InOrder(policy, windows)
        )
        self._is_watched = policy.ordered is None  # until disorder is seen
        self._rows = self._behind = 0  # rows watched; those older than the newest of their type
        self._budget = Budget(policy.miss, policy.guard, slack_ns=policy.slack_ns)
        # A window closes after its end less this.
        self._lead_ns = windows.slide_ns if policy.early else 1
        self._settling = Settling(
            windows, self._account, self._budget, tick_ns=policy.tick_ns, lead_ns=self._lead_ns
        )
        self._calibration = Calibration(states_zero=policy.is_in_order)
        self._aim = Aim(policy.miss, policy.scale, policy.slack_ns, slide_ns=windows.slide_ns)
        self._newest_of = NOTHING  # (types,), event time
        self._rowed = FirstRows(windows)
        self._now_ns = START_NS  # all ticks before this time are decided

    def _decide(self, rows: TypedRows, until_ns: int) -> None:
        if self._now_ns == START_NS:
            self._now_ns = int(rows.tick_ns[0])
            self._settling.begin(self._account.first)
        if self._is_watched and len(rows) and (mixed_ns := self._mixed_at(rows)) is not None:
            first = int(np.searchsorted(rows.tick_ns, mixed_ns))
            self._decide_known(rows[:first], mixed_ns)
            self._newest_ns = int(rows.event_time_ns[:first].max(initial=self._newest_ns))
            self._is_watched, self._knowledge = False, _InDisorder(self._policy, self._windows)
            self._calibration = Calibration(states_zero=False)
            rows = rows[first:]
        self._decide_known(rows, until_ns)

    def _mixed_at(self, rows: TypedRows) -> int | None:
        """Return the first tick that shows disorder within a type; None if none does."""
        newest_ns = tracked_of(rows, self._newest_of, self._tick_ns).newest_ns
        is_older = rows.event_time_ns < newest_ns
        older = self._behind + np.cumsum(is_older)
        share = older / (self._rows + np.arange(1, len(rows) + 1))
        mixed = is_older & (older >= LEAST_OLDER) & (share > SHARE_OLDER)
        self._rows, self._behind = self._rows + len(rows), int(older[-1])
        return int(rows.tick_ns[np.argmax(mixed)]) if mixed.any() else None

    def _decide_known(self, rows: TypedRows, until_ns: int) -> None:
        tracked = tracked_of(rows, self._newest_of, self._tick_ns)
        newest_ns = np.maximum.accumulate(np.concatenate([[self._newest_ns], rows.event_time_ns]))
        fitting = self._knowledge.fitting
        sample = self._knowledge.sample(rows, tracked)
        begin = fitted = 0  # rows that have been decided, and rows that the fitting has
        pause = None  # where the last stretch broke off, without a row in it
        while True:
            due = fitting.next_due(sample, fitted, marked=self._aim.is_fitted)
            stop = self._next_stop(rows, begin, due)
            end_ns = int(rows.tick_ns[stop]) if stop < len(rows) else until_ns
            part = slice(begin, stop)
            renewable = fitting.renewable_from - fitting.rows + fitted - begin
            next_ns = int(rows.tick_ns[begin]) if begin < len(rows) else until_ns
            broken_ns = self._settle(
                rows[part],
                tracked.newest_ns[part],
                end_ns,
                renewable=renewable,
                most=self._most_open(next_ns),
            )
            if broken_ns is not None:
                stop = begin + int(np.searchsorted(rows.tick_ns[part], broken_ns, side="right"))
            assert self._account.open is not None
            self._rowed.add(rows.event_time_ns[begin:stop], open_from=self._account.open)
            self._newest_of = latest_of(
                self._newest_of, rows.types[begin:stop], tracked.newest_ns[begin:stop]
            )
            self._now_ns = end_ns if broken_ns is None else broken_ns
            fitting.add(sample, fitted, stop)
            begin, fitted = stop, max(fitted, stop)
            if broken_ns is not None:
                pause = self._pass_pause(pause, next_ns) if next_ns > broken_ns else None
                before = int(np.searchsorted(rows.tick_ns, broken_ns))
                self._leap(broken_ns, newest_before_ns=int(newest_ns[before]))
                if self._budget.is_spent and fitting.rows >= fitting.renewable_from:
                    fitting.renew()
                    self._learn()
                continue
            if stop == len(rows):
                return
            # A change at a tick holds for that tick, so it counts all rows that come then.
            together = int(np.searchsorted(rows.tick_ns, end_ns, side="right"))
            new_types = int(rows.types[stop:together].max()) + 1 - len(self._newest_of)
            if new_types > 0:
                self._newest_of = np.append(self._newest_of, np.full(new_types, START_NS))
            changed = new_types > 0
            if due < together:
                fitting.add(sample, fitted, together)
                fitted = max(fitted, together)
                changed |= fitting.is_marked and self._aim.fit(self._budget)
                changed |= fitting.fit_if_due(spent=self._budget.is_spent)
            if changed:
                self._learn()

    def _leap(self, tick_ns: int, *, newest_before_ns: int) -> None:
        """Close the many windows without a row before an event far ahead."""
        first = self._account.open
        assert first is not None
        begun = self._windows.last_begun(newest_before_ns)
        if not isinstance(self._knowledge, _InOrder) or first <= begun or self._is_held:
            return
        after = int(self._windows.first_after(self._newest_of).min())
        if not self._policy.early:
            after = min(after, self._windows.first_after(tick_ns))
        if after - first > MOST_OPEN:
            self._settling.leap(after)
            self._steps.append((np.array([tick_ns]), np.array([after])))

    def _most_open(self, next_ns: int) -> int:
        """Return how many windows to decide together: few if no row comes for long."""
        slide_ns = self._windows.slide_ns
        period = self._tick_ns // gcd(self._tick_ns, slide_ns)  # slides until ticks fall alike
        few = -(-FEW_OPEN // period) * period
        is_pause = isinstance(self._knowledge, _InDisorder) and few <= MOST_OPEN // 4
        return few if is_pause and next_ns - self._now_ns > 4 * few * slide_ns else MOST_OPEN

    def _pass_pause(self, pause: Pause | None, next_ns: int) -> Pause | None:
        """Close the windows of a pause at once, if the last ones closed alike.

        Args:
            pause: where the stretch before broke off; None if it had rows.
            next_ns: when the next row comes, or the end of the time that passes.
        """
        assert self._account.open is not None
        first, slide_ns, budget = self._account.open, self._windows.slide_ns, self._budget
        now = Pause(
            first,
            (self._now_ns - first * slide_ns, *self._settling.standing),
            budget.early,
            budget.denied,
        )
        if pause is None or pause.standing != now.standing:
            return now
        count, early = first - pause.open, budget.early - pause.early
        if count * slide_ns % self._tick_ns or early not in (0, count) or count < FEW_OPEN:
            return now
        times = (next_ns - self._tick_ns - 1 - self._now_ns) // (count * slide_ns)
        times = min(times, (self._rowed.next_from(first) - first) // count)
        if times > 0:
            self._settling.repeat(
                times * count, early=times * early, denied=times * (budget.denied - pause.denied)
            )
            self._calibration.repeat(windows=count, every_ns=count * slide_ns, times=times)
            self._now_ns += times * count * slide_ns
            self._steps.append((np.array([self._now_ns]), np.array([self._account.open])))
        return None

    def _next_stop(self, rows: TypedRows, begin: int, due: int) -> int:
        """Return the row before which to stop: the first of a tick, or the end.

        The stop is at the first row of a new type, at the row that makes a fit due, or at the most
        rows and windows that are decided together.
        """
        # A spent budget breaks off and discards the rest, so little is computed ahead.
        most = LEAST_ROWS if self._budget.is_almost_spent else MOST_ROWS
        far_ns = min(self._now_ns + MOST_OPEN // 4 * self._windows.slide_ns, END_NS)
        ticks = rows.tick_ns[begin : begin + most + 1]
        in_sight = min(max(int(np.searchsorted(ticks, far_ns)), 1), most)
        stop = min(begin + in_sight, len(rows))
        if stop < len(rows):  # whole ticks, at least one
            first = int(np.searchsorted(rows.tick_ns, rows.tick_ns[stop]))
            after = int(np.searchsorted(rows.tick_ns, rows.tick_ns[stop], side="right"))
            stop = first if first > begin else after
        new = rows.types[begin:stop] >= len(self._newest_of)
        wanted = min(due, begin + int(np.argmax(new)) if new.any() else stop)
        if wanted < stop:
            return int(np.searchsorted(rows.tick_ns, rows.tick_ns[wanted]))
        return stop

    def _learn(self) -> None:
        types = len(self._newest_of)
        self._knowledge.learn(types, self._aim.of_each(types) if types else 0.0)

    def _settle(
        self,
        rows: TypedRows,
        newest_of_type_ns: Int64Array,
        end_ns: int,
        *,
        renewable: int,
        most: int,
    ) -> int | None:
        """Close windows before `end_ns`; return the tick where it broke off, or None."""
        open_now = self._account.open
        assert open_now is not None
        if not len(self._newest_of) or (end_ns <= self._now_ns and not len(rows)):
            return None
        last = open_now + most - 1
        pending = self._settling.sure_open
        spans = spans_of(
            rows,
            newest_of_type_ns,
            self._newest_of,
            tick_ns=self._tick_ns,
            now_ns=self._now_ns,
            end_ns=end_ns,
        )
        scope = self._scope(pending, open_now, last)
        candidates = self._candidates(spans, scope, end_ns)
        rowed, first_row = self._rowed.among(rows.event_time_ns, open_now, last)
        ticks = np.append(rows.tick_ns, START_NS)  # BEFORE indexes the last: long ago
        stretch = Stretch(
            rows,
            rowed,
            ticks[first_row],
            self._now_ns,
            end_ns,
            pending,
            open_now,
            last,
        )
        what = happenings_of(
            stretch,
            candidates,
            self._forced(open_now, last, end_ns),
            self._windows,
            forced_slack_ns=self._least_forced_ns(),
        )
        sure = sure_of(stretch, candidates)
        settled = self._settling.settle(stretch, what, sure, renewable=renewable)
        if len(settled.step_ns):
            self._steps.append((settled.step_ns, settled.step_open))
        raw = self._raw_chances(spans, settled)
        if self._policy.conditional:
            outcomes = outcomes_of(stretch, what, sure, settled)
            raw = self._calibration.stated(settled, raw, outcomes)
        if len(settled.windows):
            early = int(settled.is_early.sum())
            self._account.close(settled.windows, settled.at_ns, raw, early=early)
        return settled.broken_ns

    def _raw_chances(self, spans: Spans, settled: Settled) -> FloatArray:
        """Return the chances of the histograms, shape (closed,); NaN where there are none."""
        early = np.flatnonzero(settled.is_early)
        chances = np.zeros(len(settled.windows))
        if self._is_held:
            chances[early] = np.nan
        elif len(early):
            chances[early] = self._knowledge.chances(
                spans, settled.windows[early], settled.at_ns[early]
            )
        return chances

    def _candidates(self, spans: Spans, scope: Scope, end_ns: int) -> Candidates:
        if self._is_held:  # an unheard source may still send rows of any time
            return Candidates(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
        candidates = self._knowledge.candidates(spans, scope, now_ns=self._now_ns, end_ns=end_ns)
        if self._policy.early:
            return candidates
        return not_before_ends(candidates, self._windows, scope, end_ns=end_ns)

    def _scope(self, pending: int, first: int, last: int) -> Scope:
        return Scope(self._account.first, pending, first, last, self._tick_ns, self._lead_ns)

    def _least_forced_ns(self) -> int | None:
        """Return the least slack that a bound on slack waits for; None if unbounded."""
        bounded = self._policy.slack_ns is not None
        may_be_over = bounded and (self._budget.is_overdrawn or not self._budget.windows)
        return -self._lead_ns if may_be_over else self._policy.slack_ns

    def _forced(self, first: int, last: int, end_ns: int) -> Forced:
        """Return when windows close at the latest, before `end_ns`."""
        most_ns = self._policy.at_most_ns
        if most_ns is None:
            return Forced(NOTHING, NOTHING)
        window = np.arange(first, min(self._windows.first_after(end_ns - most_ns), last + 1))
        ends_ns = self._windows.end_ns(window)
        due_ns = (ends_ns + most_ns) // self._tick_ns * self._tick_ns
        opens_ns = ((ends_ns - self._lead_ns) // self._tick_ns + 1) * self._tick_ns
        now_ns = -(-self._now_ns // self._tick_ns) * self._tick_ns
        at_ns = np.maximum(np.maximum(due_ns, opens_ns), now_ns)
        return Forced(at_ns[at_ns < end_ns], window[at_ns < end_ns])

    def _next_tick_ns(self) -> int | None:
        first = self._account.open
        assert first is not None
        spans = spans_of(
            rows_of_types([], [], []),
            NOTHING,
            self._newest_of,
            tick_ns=self._tick_ns,
            now_ns=self._now_ns,
            end_ns=FAR_NS,
        )
        # Once a closed window is known to be complete, the budget may allow the next.
        pending = min(self._settling.sure_open, first)
        scope = self._scope(pending, first, first)
        candidates = self._candidates(spans, scope, FAR_NS)
        ticks = self._forced(first, first, FAR_NS).at_ns.tolist() + candidates.sure_at_ns.tolist()
        if self._budget.allows():
            ticks += candidates.at_ns.tolist()
        if self._policy.slack_ns is not None:
            ticks.append(self._settling.due_by_slack_ns(first))
        return max(min(ticks), self._now_ns) if ticks else None

    @property
    def entries(self) -> tuple[int, int]:
        """Entries of the estimates now, and of the poly-lines so far. Source: Table 1."""
        return self._knowledge.entries

    @property
    def _fitted(self) -> Any:
        return save(self._knowledge.fitting)

    @_fitted.setter
    def _fitted(self, state: Any) -> None:
        if self._policy.ordered is None and not self._is_watched:
            self._knowledge = _InDisorder(self._policy, self._windows)
        restore(self._knowledge.fitting, state)

    def derive(self) -> None:
        """Compute the poly-lines from the restored fit."""
        self._learn()


class _InOrder:
    """Estimates for types whose events come in order: the chance of each type's next event."""

    def __init__(self, policy: Settings, windows: WindowEnds) -> None:
        self._windows = windows
        self.fitting = HistogramFitting(policy.fit_settings)
        self._lines = Lines(None, 1.0, NOTHING)

    @property
    def entries(self) -> tuple[int, int]:
        entries = sum(histograms.entries for histograms in self.fitting.histograms)
        return entries, self._lines.entries

    def sample(
        self, rows: TypedRows, tracked: Tracked
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        return rows.types, tracked.gap_ns, tracked.delay_ns

    def learn(self, types: int, bound: float) -> None:
        """Compute the poly-lines of `types` types, each with that bound of its chance."""
        if types:
            self._lines = self.fitting.lines(types, bound)

    def candidates(self, spans: Spans, scope: Scope, *, now_ns: int, end_ns: int) -> Candidates:
        del now_ns, end_ns
        types = int(spans.types[-1]) + 1
        return candidates_of(spans, self._lines, self._windows, scope, types=types)

    def chances(self, spans: Spans, windows: Int64Array, at_ns: Int64Array) -> FloatArray:
        """Return 1 − Π (1 − P) over types for each window; shape (windows,)."""
        return self._lines.chances(spans, self._windows.end_ns(windows), at_ns)


class _InDisorder:
    """Estimates for events in any order: the chance that any event is still to come."""

    def __init__(self, policy: Settings, windows: WindowEnds) -> None:
        self._windows = windows
        self.fitting = NeedsFitting(policy.fit_settings, size_ns=windows.size_ns)
        self._bound = 0.0

    @property
    def entries(self) -> tuple[int, int]:
        needs = self.fitting.needs
        return (0 if needs is None else needs.entries), 0

    def sample(
        self, rows: TypedRows, tracked: Tracked
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        del tracked
        return rows.types, rows.event_time_ns, rows.tick_ns

    def learn(self, types: int, bound: float) -> None:
        """Set the bound of all types together from the bound of each."""
        self._bound = 1.0 - (1.0 - bound) ** types

    def candidates(self, spans: Spans, scope: Scope, *, now_ns: int, end_ns: int) -> Candidates:
        del spans
        return candidates_in_disorder(
            self.fitting.needs, self._bound, self._windows, scope, now_ns=now_ns, end_ns=end_ns
        )

    def chances(self, spans: Spans, windows: Int64Array, at_ns: Int64Array) -> FloatArray:
        """Return the chance of a miss of each window that closed at its tick."""
        del spans
        if self.fitting.needs is None:
            return np.full(len(windows), np.nan)
        return self.fitting.needs.chance(at_ns - self._windows.end_ns(windows))

"""ProbSlack as it runs: rows in, closings out, decided for many rows and windows at once.

Between two rows that change what is known (a fit that is due, a new type) all that depends on rows
alone is computed for whole arrays: when each window may close, when it is sure, which rows may be
late. What depends on what was missed before, the budget, goes over these in `Settling`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.runtime.closing.aim import Aim
from slackwater.runtime.closing.budget import Budget
from slackwater.runtime.closing.candidates import Asked, Candidates, candidates_of
from slackwater.runtime.closing.disorder import candidates_in_disorder
from slackwater.runtime.closing.first_rows import FirstRows
from slackwater.runtime.closing.fitting import HistogramFitting, NeedsFitting
from slackwater.runtime.closing.ground import NOTHING, GroundRun, Seen, seen_of
from slackwater.runtime.closing.happenings import Forced, Stretch, happenings_of, sure_of
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
"""So many windows are looked at together."""
MOST_ROWS, LEAST_ROWS = 8_192, 2048
"""So many rows are looked at together; the few where estimates may change before."""
LEAST_BEHIND, SHARE_BEHIND = 8, 0.01
"""Events behind a newer one of their type, and their share of all: more are no order."""
FAR_NS = 2**62
"""After any time that is asked for; a window may be added to it."""


class ProbSlackRun(GroundRun):
    """ProbSlack over the windows of one aggregate.

    Args:
        windows: which there are.
        policy: its settings.

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
        self._is_watched = policy.ordered is None  # whether it is in order is still to be seen
        self._rows = self._behind = 0  # of these, and of them behind a newer one of their type
        self._budget = Budget(policy.miss, policy.guard, slack_ns=policy.slack_ns)
        # A window closes after its end less this.
        self._lead_ns = windows.slide_ns if policy.early else 1
        self._settling = Settling(
            windows, self._account, self._budget, tick_ns=policy.tick_ns, lead_ns=self._lead_ns
        )
        self._aim = Aim(policy.miss, policy.scale, policy.slack_ns, slide_ns=windows.slide_ns)
        self._newest_of = NOTHING  # (types,), event time
        self._rowed = FirstRows(windows)
        self._now_ns = START_NS  # all ticks before it are decided

    def _decide(self, rows: Seen, until_ns: int) -> None:
        if self._now_ns == START_NS:
            self._now_ns = int(rows.tick_ns[0])
            self._settling.begin(self._account.first)
        if self._is_watched and len(rows) and (mixed_ns := self._mixed_at(rows)) is not None:
            first = int(np.searchsorted(rows.tick_ns, mixed_ns))
            self._decide_known(rows[:first], mixed_ns)
            self._newest_ns = int(rows.event_time_ns[:first].max(initial=self._newest_ns))
            self._is_watched, self._knowledge = False, _InDisorder(self._policy, self._windows)
            rows = rows[first:]
        self._decide_known(rows, until_ns)

    def _mixed_at(self, rows: Seen) -> int | None:
        """Return the tick from which on events are seen to come in no order; None: not in these."""
        newest_ns = tracked_of(rows, self._newest_of, self._tick_ns).newest_ns
        is_behind = rows.event_time_ns < newest_ns
        behind = self._behind + np.cumsum(is_behind)
        share = behind / (self._rows + np.arange(1, len(rows) + 1))
        mixed = is_behind & (behind >= LEAST_BEHIND) & (share > SHARE_BEHIND)
        self._rows, self._behind = self._rows + len(rows), int(behind[-1])
        return int(rows.tick_ns[np.argmax(mixed)]) if mixed.any() else None

    def _decide_known(self, rows: Seen, until_ns: int) -> None:
        tracked = tracked_of(rows, self._newest_of, self._tick_ns)
        newest_ns = np.maximum.accumulate(np.concatenate([[self._newest_ns], rows.event_time_ns]))
        fitting = self._knowledge.fitting
        sample = self._knowledge.sample(rows, tracked)
        begin = fitted = 0  # rows that have been seen, and those that estimates count
        while True:
            due = fitted + fitting.rows_till_due(marked=self._aim.is_fitted) - 1
            stop = self._next_stop(rows, begin, due)
            end_ns = int(rows.tick_ns[stop]) if stop < len(rows) else until_ns
            part = slice(begin, stop)
            renewable = fitting.renewable_from - fitting.rows + fitted - begin
            broken_ns = self._settle(
                rows[part], tracked.newest_ns[part], end_ns, renewable=renewable
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
                before = int(np.searchsorted(rows.tick_ns, broken_ns))
                self._leap(broken_ns, newest_before_ns=int(newest_ns[before]))
                if self._budget.is_spent and fitting.rows >= fitting.renewable_from:
                    fitting.renew()
                    self._learn()
                continue
            if stop == len(rows):
                return
            # What changes at a tick holds for it: it counts all rows that come at it.
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
        """Close at once the many windows without a row that one event far ahead makes sure."""
        first = self._account.open
        assert first is not None
        begun = self._windows.last_begun(newest_before_ns)
        if not isinstance(self._knowledge, _InOrder) or first <= begun or self._is_held:
            return
        after = int(self._windows.firsts_after(self._newest_of).min())
        if after - first > MOST_OPEN:
            self._settling.leap(after)
            self._steps.append((np.array([tick_ns]), np.array([after])))

    def _next_stop(self, rows: Seen, begin: int, due: int) -> int:
        """Return the row before which to stop: the first of a tick, or one behind all.

        It is the next of a type that has had none, or what estimates wait for; or what is as far
        as should be looked at together.
        """
        # What is computed ahead is in vain where a budget that is spent breaks off.
        most = LEAST_ROWS if self._budget.is_almost_spent else MOST_ROWS
        far_ns = min(self._now_ns + MOST_OPEN // 4 * self._windows.slide_ns, END_NS)
        ticks = rows.tick_ns[begin : begin + most + 1]
        in_sight = min(max(int(np.searchsorted(ticks, far_ns)), 1), most)
        stop = min(begin + in_sight, len(rows))
        new = rows.types[begin:stop] >= len(self._newest_of)
        wanted = min(due, begin + int(np.argmax(new)) if new.any() else stop)
        if wanted < stop:
            return int(np.searchsorted(rows.tick_ns, rows.tick_ns[wanted]))
        if stop == len(rows):
            return stop
        first = int(np.searchsorted(rows.tick_ns, rows.tick_ns[stop]))
        if first > begin:
            return first
        return int(np.searchsorted(rows.tick_ns, rows.tick_ns[stop], side="right"))

    def _learn(self) -> None:
        """Take up what is known by now, for the types that there are."""
        types = len(self._newest_of)
        self._knowledge.learn(types, self._aim.of_each(types) if types else 0.0)

    def _settle(
        self,
        rows: Seen,
        newest_of_type_ns: Int64Array,
        end_ns: int,
        *,
        renewable: int,
    ) -> int | None:
        """Close what closes before `end_ns`; return the tick at which it broke off, if it did."""
        open_now = self._account.open
        assert open_now is not None
        if not len(self._newest_of) or (end_ns <= self._now_ns and not len(rows)):
            return None
        last = open_now + MOST_OPEN - 1
        pending = self._settling.sure_open
        spans = spans_of(
            rows,
            newest_of_type_ns,
            self._newest_of,
            tick_ns=self._tick_ns,
            now_ns=self._now_ns,
            end_ns=end_ns,
        )
        asked = Asked(pending, open_now, last, self._tick_ns, self._lead_ns)
        candidates = self._candidates(spans, asked, end_ns)
        rowed, first_row = self._rowed.among(rows.event_time_ns, open_now, last)
        ticks = np.append(rows.tick_ns, START_NS)  # of a row that came before: long ago
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
        if len(settled.windows):
            early = np.flatnonzero(settled.is_early)
            chances = np.full(len(settled.windows), self._knowledge.chance_when_sure)
            if self._is_held:
                chances[early] = np.nan
            elif len(early):
                chances[early] = self._knowledge.chances(
                    spans, settled.windows[early], settled.at_ns[early]
                )
            self._account.close(settled.windows, settled.at_ns, chances, early=len(early))
        return settled.broken_ns

    def _candidates(self, spans: Spans, asked: Asked, end_ns: int) -> Candidates:
        if self._is_held:  # a source of which nothing is known may have anything to send
            return Candidates(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
        return self._knowledge.candidates(spans, asked, now_ns=self._now_ns, end_ns=end_ns)

    def _least_forced_ns(self) -> int | None:
        """Return what a bound on slack waits for at least; None: there is none."""
        bounded = self._policy.slack_ns is not None
        may_be_over = bounded and (self._budget.is_overdrawn or not self._budget.windows)
        return -self._lead_ns if may_be_over else self._policy.slack_ns

    def _forced(self, first: int, last: int, end_ns: int) -> Forced:
        """Return when windows close at the latest, before `end_ns`."""
        most_ns = self._policy.at_most_ns
        if most_ns is None:
            return Forced(NOTHING, NOTHING)
        window = np.arange(first, min(self._windows.first_after(end_ns - most_ns), last + 1))
        due_ns = (self._windows.ends_ns(window) + most_ns) // self._tick_ns * self._tick_ns
        now_ns = -(-self._now_ns // self._tick_ns) * self._tick_ns
        at_ns = np.maximum(due_ns, now_ns)
        return Forced(at_ns[at_ns < end_ns], window[at_ns < end_ns])

    def _next_tick_ns(self) -> int | None:
        first = self._account.open
        assert first is not None
        spans = spans_of(
            seen_of([], [], []),
            NOTHING,
            self._newest_of,
            tick_ns=self._tick_ns,
            now_ns=self._now_ns,
            end_ns=FAR_NS,
        )
        # When one that has closed is known to be complete, the budget may allow the next.
        pending = min(self._settling.sure_open, first)
        asked = Asked(pending, first, first, self._tick_ns, self._lead_ns)
        found = self._candidates(spans, asked, FAR_NS)
        ticks = self._forced(first, first, FAR_NS).at_ns.tolist() + found.sure_at_ns.tolist()
        if self._budget.allows():
            ticks += found.at_ns.tolist()
        if self._policy.slack_ns is not None:
            ticks.append(self._settling.due_by_slack_ns(first))
        return max(min(ticks), self._now_ns) if ticks else None

    @property
    def entries(self) -> tuple[int, int]:
        """How many entries estimates have now, and poly-lines so far. Source: Table 1."""
        return self._knowledge.entries

    @property
    def _fitted(self) -> Any:
        return save(self._knowledge.fitting)

    @_fitted.setter
    def _fitted(self, state: Any) -> None:
        if self._policy.ordered is None and not self._is_watched:
            self._knowledge = _InDisorder(self._policy, self._windows)
        restore(self._knowledge.fitting, state)

    def after_restore(self) -> None:
        """Take up what was known."""
        self._learn()


class _InOrder:
    """Asks each type for its next event: events of a type come in order."""

    chance_when_sure = 0.0

    def __init__(self, policy: Settings, windows: WindowEnds) -> None:
        self._windows = windows
        self.fitting = HistogramFitting(policy.fit_settings)
        self._lines = Lines(None, 1.0, NOTHING)

    @property
    def entries(self) -> tuple[int, int]:
        kept = sum(one.entries for one in self.fitting.histograms)
        return kept, self._lines.entries

    def sample(self, rows: Seen, tracked: Tracked) -> tuple[Int64Array, Int64Array, Int64Array]:
        return rows.types, tracked.gap_ns, tracked.delay_ns

    def learn(self, types: int, bound: float) -> None:
        """Draw the poly-lines anew: for so many types, each with that chance."""
        if types:
            self._lines = self.fitting.lines(types, bound)

    def candidates(self, spans: Spans, asked: Asked, *, now_ns: int, end_ns: int) -> Candidates:
        del now_ns, end_ns
        types = int(spans.types[-1]) + 1
        return candidates_of(spans, self._lines, self._windows, asked, types=types)

    def chances(self, spans: Spans, windows: Int64Array, at_ns: Int64Array) -> FloatArray:
        """Return 1 − Π (1 − P) over types, of windows that closed at these ticks; (windows,)."""
        return self._lines.chances(spans, self._windows.ends_ns(windows), at_ns)


class _InDisorder:
    """Asks for any event at all: they come in any order."""

    def __init__(self, policy: Settings, windows: WindowEnds) -> None:
        self._windows = windows
        self.fitting = NeedsFitting(policy.fit_settings)
        self._bound = 0.0

    @property
    def entries(self) -> tuple[int, int]:
        needs = self.fitting.needs
        return (0 if needs is None else needs.entries), 0

    @property
    def chance_when_sure(self) -> float:
        """The chance after the longest delay that is known."""
        return 0.0 if self.fitting.needs is None else self.fitting.needs.unforeseen

    def sample(self, rows: Seen, tracked: Tracked) -> tuple[Int64Array, Int64Array, Int64Array]:
        del tracked
        return rows.types, rows.event_time_ns, rows.tick_ns

    def learn(self, types: int, bound: float) -> None:
        """Take up a bound: of all types together."""
        self._bound = 1.0 - (1.0 - bound) ** types

    def candidates(self, spans: Spans, asked: Asked, *, now_ns: int, end_ns: int) -> Candidates:
        del spans
        return candidates_in_disorder(
            self.fitting.needs, self._bound, self._windows, asked, now_ns=now_ns, end_ns=end_ns
        )

    def chances(self, spans: Spans, windows: Int64Array, at_ns: Int64Array) -> FloatArray:
        """Return the chance of each of these windows that closed at these ticks."""
        del spans
        if self.fitting.needs is None:
            return np.full(len(windows), np.nan)
        return self.fitting.needs.chance(at_ns - self._windows.ends_ns(windows))

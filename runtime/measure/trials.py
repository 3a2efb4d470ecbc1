"""Trials of a gate: counts of the rows that other rules would have released.

```
event time   newest N ─────────────────────────────  N(now − hold): rows up to then are released
             cut of a trial = max(newest − slack, N(now − hold))
             frontier ── older rows are ready: were they older than the cut before that?
```

A row leaves a gate as slack-ready ([ssg] Eq. 4) if the cut by slack or hold passes it before the
frontier does, whether it was there by then or came later. So a row counts for a trial when it gets
ready, by comparing it with the trial's cut: one comparison of sorted rows for all rows of a slice.
Rows that are ready on arrival count for no trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Int64Array, ReleaseRule
from slackwater.runtime.model.state import Fields

MOST_ROWS, MOST_MARKS = 1 << 18, 1 << 16
"""Most waiting rows, and most times at which the newest grew; beyond, every second is dropped."""


class Trial(NamedTuple):
    """Rule that is counted for a gate, and does not release; see SetRelease.

    Attributes:
        name: name of the trial.
        rule: the rule; a rule that waits in full is counted as its slack.
    """

    name: str
    rule: ReleaseRule


class Tried(NamedTuple):
    """Result of a trial in a second.

    Attributes:
        name: name of the trial.
        slack_ready: rows that would have left before they were ready, among those that got ready,
            or were released by all trials, in this second.
        wait_ns: longest wait of a row that would have left in this second.
    """

    name: str
    slack_ready: int
    wait_ns: int


@dataclass
class _Account:
    trial: Trial
    cut_ns: int = START_NS  # older rows were released, by slack or hold
    left_ns: int = START_NS  # older rows were released so, or were ready
    most_hold_ns: int | None = 0  # in this second
    slack_ready: int = 0
    wait_ns: int = 0


@dataclass
class _Slice:
    """State of a gate after a read, and the rows that came before it."""

    now_ns: int
    newest_ns: int
    frontier_ns: int
    pieces: list[tuple[Int64Array, int]] = field(default_factory=list)


class GateTrials:
    """Trials of one gate; exact except for equal event times and very many rows."""

    STATE = Fields(
        "_accounts",
        "_slices",
        "_pieces",
        "_marks",
        "_came_ns",
        "_newest_ns",
        "_rows_ns",
        "_weight",
        "_frontier_ns",
        "_last_newest_ns",
        elements={"_accounts": _Account, "_slices": _Slice},
    )

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}
        self._slices: list[_Slice] = []
        self._pieces: list[tuple[int, Int64Array]] = []  # (writer's place, rows) of this slice
        self._marks: list[tuple[int, int]] = []  # (arrival, newest event time), not yet counted
        self._came_ns = np.empty(0, dtype=np.int64)  # when the newest grew, ascending
        self._newest_ns = np.empty(0, dtype=np.int64)  # its event time after each growth
        self._rows_ns = np.empty(0, dtype=np.int64)  # event times of rows that are not ready
        self._weight = 1  # rows that each kept row stands for
        self._frontier_ns = START_NS  # rows before it are counted
        self._last_newest_ns = START_NS

    def set(self, trials: Sequence[Trial]) -> None:
        """Count these trials from now on; trials of a known name continue."""
        self._count()
        accounts = self._accounts
        self._accounts = {}
        for trial in trials:
            known = accounts.get(trial.name) or _Account(trial, most_hold_ns=trial.rule.hold_ns)
            known.trial = trial
            known.most_hold_ns = _longer(known.most_hold_ns, trial.rule.hold_ns)
            self._accounts[trial.name] = known

    def came(self, place: int, times_ns: Int64Array, newest_ns: int, came_ns: int) -> None:
        """Add rows of a writer.

        Args:
            place: place of the writer, in the tie order.
            times_ns: event times of the rows.
            newest_ns: newest event time so far.
            came_ns: arrival of the rows.
        """
        self._pieces.append((place, times_ns))
        self._marks.append((came_ns, newest_ns))

    def read(self, now_ns: int, newest_ns: int, ready: tuple[int, int], *, writers: int) -> None:
        """Note a read of the gate, after which all rows before `ready` are ready."""
        ready_ns, ties = ready
        frontier_ns = ready_ns + (ties >= writers and ready_ns < END_NS)
        # Of rows of exactly that time, those of the first `ties` writers are ready.
        bounds_ns = ready_ns, min(ready_ns + 1, END_NS)
        pieces = [(times_ns, bounds_ns[place < ties]) for place, times_ns in self._pieces]
        self._pieces.clear()
        self._slices.append(_Slice(now_ns, newest_ns, frontier_ns, pieces))

    def close(self, end_ns: int) -> tuple[Tried, ...]:
        """End a second and return each trial's result in it."""
        self._slices.append(_Slice(end_ns, self._last(), START_NS))
        self._count()
        results = []
        for name, account in self._accounts.items():
            results.append(Tried(name, account.slack_ready * self._weight, account.wait_ns))
            account.slack_ready = account.wait_ns = 0
            account.most_hold_ns = account.trial.rule.hold_ns
        self._forget(end_ns)
        return tuple(results)

    def derive(self) -> None:
        """Make records again of the trials that accounts are kept of."""
        for account in self._accounts.values():
            saved: Any = account.trial
            name, rule = saved
            account.trial = Trial(name, ReleaseRule(*rule))

    def _last(self) -> int:
        return self._slices[-1].newest_ns if self._slices else self._last_newest_ns

    def _count(self) -> None:
        """Count the slices since the last count."""
        slices, self._slices = self._slices, []
        if not slices:
            return
        self._take(slices)
        self._mark()
        now_ns = np.array([piece.now_ns for piece in slices])
        frontier_ns = np.maximum.accumulate(
            np.array([self._frontier_ns, *(piece.frontier_ns for piece in slices)])
        )
        newest_ns = np.array([self._last_newest_ns, *(piece.newest_ns for piece in slices)])
        from_, until = frontier_ns[:-1], frontier_ns[1:]
        at = np.searchsorted(self._rows_ns, from_)
        for account in self._accounts.values():
            cut_ns = self._cuts(account, now_ns, newest_ns[:-1])
            passed_ns = np.clip(cut_ns, from_, until)
            account.slack_ready += int((np.searchsorted(self._rows_ns, passed_ns) - at).sum())
            self._wait(account, now_ns, np.maximum(cut_ns, until))
        self._frontier_ns, self._last_newest_ns = int(until[-1]), int(newest_ns[-1])
        self._drop()

    def _take(self, slices: Sequence[_Slice]) -> None:
        pieces = [piece for read in slices for piece in read.pieces]
        if not pieces:
            return
        times_ns = np.concatenate([times_ns for times_ns, _ in pieces])
        bounds_ns = np.repeat([bound for _, bound in pieces], [len(times) for times, _ in pieces])
        waiting_ns = times_ns[times_ns >= bounds_ns]
        if self._weight > 1:
            waiting_ns = waiting_ns[:: self._weight]
        gone = waiting_ns < self._frontier_ns  # older than rows that all trials have released
        for account in self._accounts.values():
            account.slack_ready += int(np.count_nonzero(gone))
        waiting_ns = waiting_ns[~gone]
        if len(waiting_ns):
            self._rows_ns = np.concatenate((self._rows_ns, waiting_ns))
            self._rows_ns.sort(kind="stable")  # fast on runs that are sorted already

    def _mark(self) -> None:
        if not self._marks:
            return
        new = np.array(sorted(self._marks), dtype=np.int64).reshape(-1, 2)
        self._marks.clear()
        before_ns = self._newest_ns[-1] if len(self._newest_ns) else START_NS
        newest_ns = np.maximum.accumulate(np.maximum(new[:, 1], before_ns))
        grows = newest_ns > np.concatenate(([before_ns], newest_ns[:-1]))
        self._came_ns = np.concatenate((self._came_ns, new[grows, 0]))
        self._newest_ns = np.concatenate((self._newest_ns, newest_ns[grows]))

    def _cuts(self, account: _Account, now_ns: Int64Array, newest_ns: Int64Array) -> Int64Array:
        """Return a trial's cut before each slice, shape (m,): older rows are released."""
        lead_ns, hold_ns = account.trial.rule.lead_ns, account.trial.rule.hold_ns
        cut_ns = np.full(len(now_ns), account.cut_ns)
        if lead_ns is not None:
            known = newest_ns > START_NS
            cut_ns = np.where(known, np.maximum(cut_ns, newest_ns - lead_ns), cut_ns)
        if hold_ns is not None and len(self._came_ns):
            place = np.searchsorted(self._came_ns, now_ns - hold_ns, side="right") - 1
            due_ns = np.where(place < 0, START_NS, self._newest_ns[place] + 1)
            cut_ns = np.maximum(cut_ns, due_ns)
        cut_ns = np.maximum.accumulate(cut_ns)
        account.cut_ns = int(cut_ns[-1])
        return cut_ns

    def _wait(self, account: _Account, now_ns: Int64Array, left_ns: Int64Array) -> None:
        """Count the wait of the first row that left with each slice."""
        left_ns = np.maximum.accumulate(np.maximum(left_ns, account.left_ns))
        before_ns = np.concatenate(([account.left_ns], left_ns[:-1]))
        account.left_ns = int(left_ns[-1])
        if not len(self._newest_ns):
            return
        place = np.searchsorted(self._newest_ns, before_ns)
        is_there = place < len(self._newest_ns)
        place = np.minimum(place, len(self._newest_ns) - 1)
        is_there &= self._newest_ns[place] < left_ns
        if is_there.any():
            wait_ns = int((now_ns - self._came_ns[place])[is_there].max())
            if account.most_hold_ns is not None:  # a gate wakes up for the hold; slices come later
                wait_ns = min(wait_ns, account.most_hold_ns)
            account.wait_ns = max(account.wait_ns, wait_ns)

    def _drop(self) -> None:
        """Forget rows that are ready; count and forget rows that all trials released."""
        gone_ns = self._frontier_ns
        if self._accounts:
            gone_ns = max(gone_ns, min(account.cut_ns for account in self._accounts.values()))
            self._release(gone_ns)
        self._frontier_ns = gone_ns
        self._rows_ns = self._rows_ns[np.searchsorted(self._rows_ns, gone_ns) :]

    def _release(self, until_ns: int) -> None:
        at, to = np.searchsorted(self._rows_ns, (self._frontier_ns, until_ns))
        for account in self._accounts.values():
            account.slack_ready += int(max(to - at, 0))

    def _forget(self, end_ns: int) -> None:
        """Forget times of growth that are no longer needed; thin out long arrays."""
        if not self._accounts:
            self._rows_ns = self._rows_ns[:0]
        if len(self._came_ns):
            holds = [account.trial.rule.hold_ns or 0 for account in self._accounts.values()]
            needed = (
                np.searchsorted(self._came_ns, end_ns - max(holds, default=0), side="right") - 1
            )
            left_ns = min([account.left_ns for account in self._accounts.values()], default=END_NS)
            first = max(min(int(needed), int(np.searchsorted(self._newest_ns, left_ns))), 0)
            thin = 2 if len(self._came_ns) - first > MOST_MARKS else 1
            # Of each pair the later one stays, so that the newest is kept exactly.
            self._came_ns = self._came_ns[first:][::-1][::thin][::-1].copy()
            self._newest_ns = self._newest_ns[first:][::-1][::thin][::-1].copy()
        while len(self._rows_ns) > MOST_ROWS:
            self._rows_ns = self._rows_ns[::2].copy()
            self._weight *= 2


def _longer(first_ns: int | None, other_ns: int | None) -> int | None:
    return None if first_ns is None or other_ns is None else max(first_ns, other_ns)

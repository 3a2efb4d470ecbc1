"""WindowShedding drops events of windows, read by read, and learns from windows.

```
rows of a key ──▶ windows that open ──▶ pairs of events and windows ──▶ dropped or not
matches ─────────▶ hits of their windows ──▶ windows that are over are learnt from
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from slackwater.runtime.model import Batch, BoolArray, Int64Array
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.patterns.operator.rows import Rows
from slackwater.runtime.patterns.operator.step import PatternStep
from slackwater.runtime.patterns.scopes import OpenedWindows, Within
from slackwater.runtime.patterns.settings import Found, Settings
from slackwater.runtime.patterns.windowed import WindowMatcher
from slackwater.runtime.shedding.counts import SheddingCounts
from slackwater.runtime.shedding.losses import Judged
from slackwater.runtime.shedding.machine import Shedding, places_of
from slackwater.runtime.shedding.settings import SheddingSettings
from slackwater.runtime.shedding.windows import FinishedWindows
from slackwater.runtime.shedding.wrapper.event_drops import EventDrops, note_tried
from slackwater.runtime.shedding.wrapper.kept import Covered, Kept, Own
from slackwater.runtime.shedding.wrapper.kinds import EventKinds, shown_columns
from slackwater.runtime.shedding.wrapper.open_windows import KeyWindows, OpenWindow, covering
from slackwater.runtime.shedding.wrapper.pair_drops import PairDrops
from slackwater.runtime.shedding.wrapper.what_if import Parts, Trial

_MOST_SAMPLED = 1 << 17
"""So many more events of finished windows may be learnt than have come."""
Judge = Callable[[Trial], tuple[Judged, list[Parts]]]


class WindowShedding:
    """The shedding of one operator, over all keys.

    Args:
        step: step of the pattern.
        shed: the settings of shedding.
        settings: the settings of the pattern.
        matcher_of: the matcher of a key, by its code; None if it has none yet.
    """

    STATE = Fields(
        "_shedding",
        Field("_of_key", by=OWNER),
        "_numbers",
        Field("_tried", by=OWNER),
        "_gap_ns",
        "_cut_ns",
        "_is_blind",
        "_drops",
        "_sampled_left",
        "_kinds",
        elements={"_of_key": "_new_windows"},
    )

    def __init__(
        self,
        step: PatternStep,
        shed: SheddingSettings,
        settings: Settings,
        matcher_of: Callable[[int], WindowMatcher | None],
    ) -> None:
        assert not isinstance(step.scope, Within)
        self._rules = settings.rules
        self._rule, self._columns = step.scope, shown_columns(shed)
        self._opens = step.scope.asked if isinstance(step.scope, OpenedWindows) else None
        self._kinds = EventKinds(step, shed)
        self._of_key: dict[int, KeyWindows] = {}
        self._numbers = 0  # the number of windows so far
        self._learns = shed.ranks
        self._shedding = Shedding(shed, self._kinds.repetitions)
        self._drops: PairDrops | EventDrops | StretchDrops
        match shed.drops:
            case "pairs":
                self._drops = PairDrops(self._shedding)
            case "events":
                self._drops = EventDrops(self._shedding, matcher_of, seed=shed.seed)
            case "stretches":
                self._drops = StretchDrops(self._shedding)
        self._tried: dict[int, int] = {}  # {code of a key: its open windows that are tried}
        self._gap_ns: int | None = None  # the last row passed over; None if not now
        self._cut_ns: int | None = None  # the time of the last row that was not seen
        self._is_blind = False  # nothing is known of rows since then
        self._sampled_left = _MOST_SAMPLED
        self._places: dict[tuple[int, ...], bool] = {}  # {what an event fits: has it a place?}

    @property
    def counts(self) -> SheddingCounts:
        """The counts of shedding so far."""
        return self._shedding.counts

    @property
    def kept(self) -> int:
        """The work so far; see `Shedding.kept`."""
        return self._shedding.kept

    @property
    def shed(self) -> int:
        """Events so far that no window of theirs kept."""
        return self._shedding.shed

    @property
    def passed_over(self) -> int:
        """Events so far that were not looked at."""
        return self._shedding.passed_over

    def took(self, took_ns: int, idle_ns: int) -> None:
        """Note how long the last slice took, and the slot's idle time so far."""
        self._shedding.took(took_ns, idle_ns)

    def reckon_with(self, rest_ns: int) -> None:
        """Count the time that events take downstream of this operator, up to egress."""
        self._shedding.reckon_with(rest_ns)

    def look(self, rows: Batch, now_ns: int) -> None:
        """Observe rows that come, and decide what is dropped."""
        self._shedding.look(rows, now_ns)

    @property
    def is_passing_over(self) -> bool:
        """Whether rows that come now are not looked at at all."""
        return self._shedding.is_passing_over

    @property
    def is_in_gap(self) -> bool:
        """Whether the rows that came last were passed over."""
        return self._gap_ns is not None

    def begin_gap(self, from_ns: int, judge: Judge) -> None:
        """Give up open windows, as rows are passed over from a time on."""
        self.finish(list(self._of_key), from_ns, judge)
        self._gap_ns = from_ns
        for windows in self._of_key.values():
            windows.give_up()

    def end_gap(self) -> int:
        """Look at rows again; return the time of the last that was passed over."""
        assert self._gap_ns is not None
        self._cut_ns, self._gap_ns, self._is_blind = self._gap_ns, None, False
        return self._cut_ns

    def pass_over(self, first: int, times: Int64Array) -> bool:
        """Return whether tried windows have none of these rows; if so, count them.

        Args:
            first: the number of the first among all events.
            times: the time of each.
        """
        self._gap_ns = times.item(-1)
        if not self._is_untried(first, times):
            return False
        self._shedding.pass_over(len(times))
        return True

    def leaves_alone(self, first: int, times: Int64Array) -> bool:
        """Return whether rows are looked at as without shedding; if so, count them.

        Args:
            first: the number of the first among all events.
            times: the time of each.
        """
        if self._drops.follows_all or not self._shedding.knows_windows:
            return False
        return self._is_untried(first, times)

    def _is_untried(self, first: int, times: Int64Array) -> bool:
        """Return whether no tried window has these rows; then windows are not followed."""
        end = first + len(times)
        if self._shedding.blocks(first, end) or self._tried:
            self._is_blind = False
            return False
        if not self._is_blind:
            for windows in self._of_key.values():
                windows.give_up(keep_tried=False)
        self._is_blind, self._cut_ns = True, times.item(-1)
        self._shedding.came(first, end, [], in_gap=self.is_in_gap)
        return True

    def dropped(
        self,
        rows: Batch,
        codes: Int64Array,
        numbers: Int64Array,
        events: Int64Array,
        places: Int64Array,
        kinds: Int64Array,
        of_kind: list[tuple[int, ...]],
    ) -> Kept:
        """Open windows, and return what is dropped.

        Args:
            rows: rows of the read, in order.
            codes: shape (rows,), of their keys.
            numbers: shape (rows,), among the events of their keys.
            events: shape (rows,), among all.
            places: places of the rows that fit an event.
            kinds: the kind of each of these.
            of_kind: the numbers that each kind fits.
        """
        known = self._kinds.of(rows, places, kinds, of_kind)
        opens = np.zeros(len(rows), dtype=np.bool_)
        if self._opens is not None:
            opens[places] = np.array([self._opens in one for one in of_kind]).take(kinds)
        matters, may_match, is_shed, is_idle = np.zeros((4, len(rows)), dtype=np.bool_)
        is_shed[:] = self.is_in_gap
        first, end = events.item(0), events.item(-1) + 1
        blocks = self._shedding.blocks(first, end)
        self._shedding.came(first, end, blocks, in_gap=self.is_in_gap)
        kept = Kept(known, opens, is_shed, is_idle, self.is_in_gap, blocks)
        matters[places] = True
        may_match[places] = self._may_match(kinds, of_kind)
        self._sampled_left = min(self._sampled_left + len(rows), _MOST_SAMPLED)
        before, times = self._numbers, rows.event_time_ns
        order = codes.argsort(kind="stable")
        ordered = codes.take(order)
        begins = np.flatnonzero(np.diff(ordered, prepend=-1))
        for at, code in zip(
            np.split(order, begins[1:]), ordered.take(begins).tolist(), strict=True
        ):
            own = Own(
                code,
                at,
                numbers.take(at),
                times.take(at),
                known.take(at, axis=1),
                opens.take(at),
                events.take(at),
                matters.take(at),
                may_match.take(at),
            )
            self._of_one(own, kept)
        self._shedding.opened(self._numbers - before, len(rows), len(places))
        if kept.is_in_gap:
            self._shedding.pass_over(len(rows))
        return kept

    def settle(self, kept: Kept) -> None:
        """Count what was dropped of a read, after it has been worked on."""
        self._drops.settle(kept)

    def worked(self, events: int) -> None:
        """Note how many events of a read windows took, where none of these is dropped."""
        self._drops.worked(events)

    def _may_match(self, kinds: Int64Array, of_kind: list[tuple[int, ...]]) -> BoolArray:
        by_kind = np.array([self._has_place(one) for one in of_kind], np.bool_)
        may_match: BoolArray = by_kind.take(kinds)
        return may_match

    def _has_place(self, fits: tuple[int, ...]) -> bool:
        has_place = self._places.get(fits)
        if has_place is None:
            has_place = any(one.roles(fits).places for one in self._rules)
            self._places[fits] = has_place
        return has_place

    def _of_one(self, own: Own, kept: Kept) -> None:
        code = own.code
        windows = self._of_key.get(code)
        if windows is None:
            if self._opens is not None and not own.opens.any():
                return
            windows = self._of_key[code] = self._new_windows(code)
        self._open(own, windows, kept)
        if not windows.open:
            return
        windows.add(own.numbers, own.known)
        begin = own.numbers.item(0)
        first, end = windows.ranges(begin, own.times)
        for one, at_end in zip(windows.open, end.tolist(), strict=True):
            if at_end < len(own.at) and one.over_at is None:
                one.over_at = own.events.item(at_end)
                if one.end is None:
                    one.end = begin + at_end  # from now on the end is known
        covered = Covered(first, end, covering(first, end, len(own.at)))
        self._drops.drop(own, windows.open, covered, kept)

    def _open(self, own: Own, windows: KeyWindows, kept: Kept) -> None:
        """Open the windows that begin with a key's rows; in a gap, tried ones only."""
        begins = windows.begins(own.numbers, own.times, own.opens, cut_ns=self._cut_ns)
        for key, low, end, end_ns in begins:
            size = end - low if end is not None else windows.last_size or self._shedding.size
            number, self._numbers = self._numbers, self._numbers + 1
            at = own.events.item(low - own.numbers.item(0))
            is_whole = self._drops.keeps_whole(number, size)
            one = OpenWindow(key, low, end, end_ns, number, size, at, is_whole)
            for block in kept.blocks:
                if block.first <= at < block.end:
                    one.trial = Trial(block.number, block.stands_for, kept.is_in_gap)
                    self._tried[own.code] = self._tried.get(own.code, 0) + 1
            if kept.is_in_gap:
                one.given_up = low
            if one.trial is not None or not kept.is_in_gap:
                windows.open.append(one)

    # -- learning -----------------------------------------------------------------------

    def hit(self, hits: Sequence[tuple[int, Found]], rows: Rows) -> set[int]:
        """Note matches, by the codes of their keys; return these codes.

        Args:
            hits: matches that have left.
            rows: the rows that they are made of.
        """
        turns = np.array([turn for _, match in hits for turn, _ in match.parts], dtype=np.int64)
        distinct, places = np.unique(turns, return_inverse=True)
        columns = rows.at(distinct).columns
        shown = np.stack([np.asarray(columns[name]) for name in self._columns]).take(places, axis=1)
        numbers, known = shown[0], shown[1:]
        end = 0
        for code, match in hits:
            begin, end = end, end + len(match.parts)
            self._hit(code, match.window, numbers[begin:end], known[:, begin:end])
        return {code for code, _ in hits}

    def _hit(self, code: int, window: int, numbers: Int64Array, known: Int64Array) -> None:
        """Note a match of a window: its events' numbers, and what is known of them."""
        windows = self._of_key.get(code)
        if windows is None:
            return
        for one in windows.open:
            if one.key == window:
                if not one.is_shed:
                    one.hits.append((known, numbers - one.first))
                return

    def turns_tried(self) -> list[int]:
        """Return the places in the stream of events that a trial has."""
        return [
            seen.turn
            for windows in self._of_key.values()
            for one in windows.open
            for seen in (() if one.trial is None else one.trial.events)
        ]

    def finish(self, codes: Sequence[int], passed_ns: int, judge: Judge) -> None:
        """Learn from windows of these keys that are over.

        Args:
            codes: keys of which something has come, or was decided.
            passed_ns: time after which nothing older follows.
            judge: returns the losses of a window, and the matches that it would have had.
        """
        over: list[tuple[OpenWindow, int, Int64Array]] = []
        events = 0  # noted events of the windows that are judged
        for code in sorted({*codes, *self._tried}):
            windows = self._of_key.get(code)
            if windows is None:
                continue
            next_number = windows.next_number
            for one in windows.ended(next_number, passed_ns):
                end = one.end if one.end is not None else next_number
                size = end - one.first
                self._shedding.ended(one.at, one.over_at, size)
                if one.end_ns is not None:
                    windows.last_size = size
                if one.trial is not None:
                    events += len(one.trial.events)
                    self._judge(code, one, one.trial, judge, events)
                if self._learns and not one.is_shed and size > 0:
                    over.append((one, size, windows.known_of(one.first, end)))
            windows.forget()
        if over:
            self._drops.learned(len(over), sum(len(one.hits) for one, _, _ in over))
            self._shedding.learn(self._finished(over))

    def _judge(
        self, code: int, window: OpenWindow, trial: Trial, judge: Judge, events: int
    ) -> None:
        """Count the losses of a tried window; it may teach what matches need."""
        self._tried[code] -= 1
        if not self._tried[code]:
            del self._tried[code]
        if not self._shedding.may_judge(trial.block, events):
            return
        verdict, matches = judge(trial)
        self._shedding.judged(trial.block, trial.stands_for, verdict, in_gap=trial.is_in_gap)
        if self._learns and self._drops.learns_from_trials:
            window.is_shed, window.hits = False, trial.hits(matches, window.first)

    def _finished(self, over: list[tuple[OpenWindow, int, Int64Array]]) -> FinishedWindows:
        sampled = self._shedding.samples(np.array([one.number for one, _, _ in over]))
        for index, (one, size, _) in enumerate(over):
            sampled[index] |= one.trial is not None
            sampled[index] &= self._sampled_left > 0
            self._sampled_left -= size if sampled[index] else 0
        hits = [
            (index, known, positions)
            for index, (one, _, _) in enumerate(over)
            for known, positions in one.hits
        ]
        every = [
            (index, known, np.arange(size))
            for index, (_, size, known) in enumerate(over)
            if sampled[index]
        ]
        return FinishedWindows(
            sizes=np.array([size for _, size, _ in over], dtype=np.int64),
            hits=places_of(hits),
            matches=np.repeat(np.arange(len(hits)), [len(positions) for _, _, positions in hits]),
            sampled=sampled,
            events=places_of(every),
        )

    def _new_windows(self, code: int) -> KeyWindows:
        del code
        return KeyWindows(self._rule)


class StretchDrops:
    """StretchDrops notes what tried windows have and lose, between stretches of the stream.

    There nothing is dropped or ranked. So windows are followed only while some are tried, to see
    what the stretches cost in matches.

    Args:
        shedding: the load, which counts the work.
    """

    STATE = Fields()
    follows_all = False
    """Windows are followed only while some are tried."""
    learns_from_trials = False

    def __init__(self, shedding: Shedding) -> None:
        self._shedding = shedding

    def keeps_whole(self, window: int, size: int) -> bool:
        """Return False: single events are never dropped."""
        del window, size
        return False

    def drop(self, own: Own, every: list[OpenWindow], covered: Covered, kept: Kept) -> None:
        """Note the rows of tried windows."""
        tried = [
            (one, one.trial, begin, end)
            for one, begin, end in covered.of(every)
            if one.trial is not None
        ]
        note_tried(own, tried, kept)

    def worked(self, events: int) -> None:
        """Count the events that windows took."""
        self._shedding.count_work(events)

    def learned(self, windows: int, matches: int) -> None:
        """Learn nothing."""

    def settle(self, kept: Kept) -> None:
        """Count nothing: rows passed over are counted as they come."""

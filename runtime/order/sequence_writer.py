"""Numbering of one writer: the expected number, held rows, numbers given up.

```
came       1  2  4  5  6  3        7  9  …        12 ms later
expected   1  2  3        3        7  8           8 is given up
leaves     1  2           3 4 5 6  7              9
```

Rows come here as runs of consecutive numbers, so the only cost of a row in order is that the
timeout learns from it.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slackwater.runtime.model import START_NS, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.sequence_fates import Fates, Piece
from slackwater.runtime.order.timeout import Timeout

if TYPE_CHECKING:
    from slackwater.runtime.order.sequence import BySequence


@dataclass(slots=True)
class _Held:
    """Rows with consecutive numbers that wait for the gap in front of them."""

    first: int
    last: int
    opened_ns: int  # when the first row after this gap came
    deadline_ns: int
    ids: list[Int64Array]
    came_ns: list[Int64Array]


class Numbering:
    """Numbering of one writer. Source: [thesis] §3.2.1, Fig. 4.2.

    Args:
        writer: number of the writer.
        policy: settings of the order.

    Attributes:
        due_ns: when the first gap is given up if nothing comes up to then; None if there is no gap.
        expected: the next number; None if there was no row yet.
    """

    STATE = Fields(
        "timeout",
        "_given_up",
        "expected",
        "_first",
        "_before",
        "_highest",
        "_older",
        "due_ns",
        "_began_ns",
        "_timer_ns",
        "_held",
        elements={"_held": _Held},
    )

    __slots__ = (
        "_before",
        "_began_ns",
        "_first",
        "_given_up",
        "_held",
        "_highest",
        "_older",
        "_policy",
        "_timer_ns",
        "due_ns",
        "expected",
        "timeout",
        "writer",
    )

    def __init__(self, writer: int, policy: BySequence) -> None:
        self.writer, self._policy = writer, policy
        self.timeout = Timeout(
            policy.timeout_ns, alpha=policy.alpha, beta=policy.beta, least_ns=policy.least_ns
        )
        self.due_ns: int | None = None
        self.expected: int | None = None
        self._first = 0
        self._began_ns = START_NS  # event time of the row that started a new numbering
        self._before: int | None = None  # the highest number of the numbering before
        self._highest: int | None = None  # the highest number of this numbering so far
        self._older: int | None = None  # numbers up to this are of events older than the newest
        self._held: list[_Held] = []  # by number
        self._given_up = GivenUp()
        self._timer_ns = START_NS  # end of the timer that each row held after a gap restarts

    def take(self, number: int, start: int, stop: int, piece: Piece, fates: Fates) -> None:
        """Take rows [start, stop) of a piece, whose numbers are consecutive.

        The first number is as in the column: where numbers start again is decided here, row by row.
        """
        clock = piece.clock
        while start < stop:
            self.pass_time(clock[start], fates)
            if self.expected is None:
                self._begin(number)
            if self._policy.wraps is not None:
                number = self._policy.unwrapped(number, self._top)
            assert self.expected is not None, "a row has come"
            if number == self.expected:
                end = self._in_order(number, start, stop, piece, fates)
                number, start = number + end - start, end
            elif number > self.expected:
                end = self._ahead(number, start, stop, piece, fates)
                number, start = number + end - start, end
            elif self._starts_numbering(number, start, piece):
                self._renumber(number, start, piece, fates)
            else:
                self._take_passed(number, start, piece, fates)
                number, start = number + 1, start + 1

    def pass_time(self, now_ns: int, fates: Fates) -> None:
        """Give up gaps whose wait has ended before now, and release the rows after them."""
        while self.due_ns is not None and self.due_ns < now_ns:
            ended_ns = self.due_ns
            self._give_up(fates.moment(ended_ns, self.writer), fates)
            self._look_at_gap(ended_ns)

    def finish(self, at: int, fates: Fates) -> None:
        """Give up every gap at the end of the input."""
        while self._held:
            self._give_up(at, fates)
        self.due_ns = None

    # -- rows that leave ----------------------------------------------------------------

    def _in_order(self, number: int, start: int, stop: int, piece: Piece, fates: Fates) -> int:
        """Release rows from the expected number on; return the position after the last."""
        clock = piece.clock
        if self._held and self.due_ns is not None:
            stop = min(stop, start + self._held[0].first - number)
            stop = bisect_right(clock, self.due_ns, start, stop)
        rows = piece.rows[start:stop]
        self._came(number, start, stop, piece)
        fates.released.append((piece.ids[start:stop], rows))
        if fates.silent_ns is None:
            self.timeout.came_in_order(clock[start:stop])
        else:
            after_ns = self.timeout.came_in_order_each(clock[start:stop])
            fates.silent_ns[rows] = piece.clock_ns[start:stop] + self._silence_ns(after_ns)
        self.expected = number + stop - start
        if self._held:
            self._spoke(rows, piece.clock_ns[start:stop], fates)
            if self._held[0].first == self.expected:
                self._fill(int(rows[-1]), clock[stop - 1], fates)
                self._spoke(rows[-1:], piece.clock_ns[stop - 1 : stop], fates)
        return stop

    def _fill(self, at: int, now_ns: int, fates: Fates) -> None:
        """Release the rows that waited for a gap that is now closed."""
        freed = self._held.pop(0)
        self.timeout.waited((now_ns - np.concatenate(freed.came_ns)).tolist())
        fates.released += [(ids, at) for ids in freed.ids]
        self.expected = freed.last + 1
        self._look_at_gap(now_ns)

    def _give_up(self, at: int, fates: Fates) -> None:
        freed = self._held.pop(0)
        assert self.expected is not None, "rows are held"
        self._given_up.add(self.expected, freed.first - 1, opened_ns=freed.opened_ns)
        fates.given_up.append((at, freed.first - self.expected))
        fates.released += [(ids, at) for ids in freed.ids]
        self.expected = freed.last + 1

    # -- rows that wait -----------------------------------------------------------------

    def _ahead(self, number: int, start: int, stop: int, piece: Piece, fates: Fates) -> int:
        """Hold rows whose number is after a gap; return the position after the last."""
        held, policy = self._held, self._policy
        assert self.expected is not None, "a row has come"
        highest = self._top
        if number > highest and self._is_of_before(number, highest, piece.event_ns.item(start)):
            self._note_late(start, piece, fates)
            return start + 1
        if number - highest > policy.reach:
            self._renumber(number, start, piece, fates)
            return start
        place = bisect_right(held, number, key=lambda waiting: waiting.first)
        if place and number <= held[place - 1].last:
            if self._starts_numbering(number, start, piece):
                self._renumber(number, start, piece, fates)
                return start
            fates.duplicates.append(int(piece.rows[start]))
            self._spoke(piece.rows[start : start + 1], piece.clock_ns[start : start + 1], fates)
            return start + 1
        if place < len(held):
            stop = min(stop, start + held[place].first - number)
        elif self._began_ns > START_NS:
            of_before = piece.event_ns[start:stop] < self._began_ns
            stop = start + int(of_before.argmax()) if of_before.any() else stop
        now_ns, timeout_ns = piece.clock[start], self.timeout.timeout_ns
        opened_ns = held[place].opened_ns if place < len(held) else now_ns
        deadline_ns = held[place].deadline_ns if place < len(held) else now_ns + timeout_ns
        if policy.restart == "added":
            most_ns = (min(held[0].opened_ns, opened_ns) if held else opened_ns) + policy.timeout_ns
            stop = _until_pause(piece.clock_ns[start:stop], timeout_ns, most_ns) + start
            self._timer_ns = piece.clock[stop - 1] + timeout_ns
        else:
            until_ns = deadline_ns if self.due_ns is None else self.due_ns
            stop = bisect_right(piece.clock, until_ns, start, stop)
        added = _Held(
            number,
            number + stop - start - 1,
            opened_ns,
            deadline_ns,
            [piece.ids[start:stop]],
            [piece.clock_ns[start:stop]],
        )
        self._came(number, start, stop, piece)
        self._hold(place, added)
        self._look_at_gap(piece.clock[start])
        self._spoke(piece.rows[start:stop], piece.clock_ns[start:stop], fates)
        return stop

    def _hold(self, place: int, added: _Held) -> None:
        held = self._held
        if place < len(held) and held[place].first == added.last + 1:
            after = held.pop(place)
            added.last = after.last
            added.ids += after.ids
            added.came_ns += after.came_ns
        if place and held[place - 1].last == added.first - 1:
            before = held[place - 1]
            before.last = added.last
            before.ids += added.ids
            before.came_ns += added.came_ns
        else:
            held.insert(place, added)

    def _look_at_gap(self, now_ns: int) -> None:
        """Set when the first gap is given up: not before now."""
        if not self._held:
            self.due_ns = None
            return
        first = self._held[0]
        due_ns = first.deadline_ns
        if self._policy.restart == "added":
            due_ns = min(self._timer_ns, first.opened_ns + self._policy.timeout_ns)
        self.due_ns = max(due_ns, now_ns)

    # -- rows with a passed number ------------------------------------------------------

    def _take_passed(self, number: int, start: int, piece: Piece, fates: Fates) -> None:
        """Note whether a row with a passed number is late, a duplicate or unknown."""
        if piece.event_ns[start] < self._began_ns:  # of the numbering before
            self._note_late(start, piece, fates)
            return
        opened_ns = self._given_up.take(number)
        if opened_ns is not None:
            if self._policy.learns_from_late:
                self.timeout.waited([piece.clock[start] - opened_ns])
            self._note_late(start, piece, fates)
        elif number < self._first:
            # Below the first number that came: the numbers between are missing, too.
            if number + 1 < self._first:
                last = self._first - 1
                self._given_up.add(number + 1, last, opened_ns=piece.clock[start])
            self._first = number
            self._note_late(start, piece, fates)
        else:
            known = fates.unknown if self._given_up.is_forgotten(number) else fates.duplicates
            known.append(int(piece.rows[start]))
            self._spoke(piece.rows[start : start + 1], piece.clock_ns[start : start + 1], fates)

    def _note_late(self, start: int, piece: Piece, fates: Fates) -> None:
        fates.late.append((int(piece.rows[start]), int(piece.ids[start])))
        self._spoke(piece.rows[start : start + 1], piece.clock_ns[start : start + 1], fates)

    # -- a numbering begins -------------------------------------------------------------

    def _starts_numbering(self, number: int, start: int, piece: Piece) -> bool:
        """Whether a passed number starts a new numbering: its event is the newest.

        A row that is late, or comes twice, happened before others that have come. By a coarse clock
        its event may have exactly the newest time; then it is an old row if that number's events
        are older.
        """
        event_ns, newest_ns = piece.event_ns.item(start), piece.before_ns.item(start)
        if event_ns == newest_ns:
            return self._older is not None and number <= self._older
        return event_ns > newest_ns

    def _is_of_before(self, number: int, highest: int, event_ns: int) -> bool:
        """Whether a number ahead is of the numbering before the current one."""
        if event_ns != self._began_ns or self._before is None:
            return event_ns < self._began_ns
        # By a coarse clock it may be of either numbering; the nearer one is chosen.
        return abs(number - self._before) < min(number, self._before) - highest

    def _came(self, number: int, start: int, stop: int, piece: Piece) -> None:
        """Note the highest number, and the highest whose events are older than the newest."""
        at, highest = piece.newest_at[stop - 1], self._highest
        if at > start:
            self._older = number + at - start - 1
        elif at == start:
            self._older = None if highest is None else min(highest, number - 1)
        last = number + stop - start - 1
        self._highest = last if highest is None else max(highest, last)

    @property
    def _top(self) -> int:
        assert self.expected is not None, "a row has come"
        return self._held[-1].last if self._held else self.expected - 1

    def _renumber(self, number: int, start: int, piece: Piece, fates: Fates) -> None:
        at = int(piece.rows[start])
        self.finish(at, fates)
        fates.renumbered.append(at)
        self._given_up = GivenUp()
        self._began_ns = int(piece.event_ns[start])
        self._before, self._highest, self._older = self._highest, None, None
        self._begin(number)

    def _begin(self, number: int) -> None:
        policy, first = self._policy, number
        if policy.first is not None:
            ahead = policy.in_column(number - policy.first)
            if 0 <= ahead < policy.reach:
                first = number - ahead
        self.expected = self._first = first

    # -- silence ------------------------------------------------------------------------

    def _spoke(self, rows: Int64Array, clock_ns: Int64Array, fates: Fates) -> None:
        """Set when the writer is silent: not while it may fill a gap."""
        if fates.silent_ns is None or not len(rows):
            return
        until_ns = clock_ns + self._silence_ns(np.int64(self.timeout.timeout_ns))
        if self._held and self.due_ns is not None:
            np.maximum(until_ns, max(self.due_ns, self._held[-1].deadline_ns), out=until_ns)
        fates.silent_ns[rows] = until_ns

    def _silence_ns(self, timeout_ns: Any) -> Any:
        silent_ns = self._policy.silent_ns
        return timeout_ns if silent_ns is None else np.int64(silent_ns)


def _until_pause(clock_ns: Int64Array, timeout_ns: int, most_ns: int) -> int:
    # Each arrival restarts the timer: count those that come before it ends.
    ends_ns = np.minimum(clock_ns[:-1] + timeout_ns, most_ns)
    pauses = (clock_ns[1:] > ends_ns).nonzero()[0]
    return int(pauses[0]) + 1 if len(pauses) else len(clock_ns)


MOST_GAPS = 4_096
"""Most gaps remembered of a writer: of lower numbers it is unknown whether they were given up."""


class GivenUp:
    """Runs of numbers given up that have not come since.

    They tell late rows from duplicates. The oldest are forgotten first.

    Attributes:
        forgotten: the highest number of a gap that is no longer remembered; None if all are.
    """

    STATE = Fields("_firsts", "_gaps", "forgotten")

    __slots__ = ("_firsts", "_gaps", "forgotten")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._gaps: list[tuple[int, int]] = []  # (last number, when its wait began), by first
        self.forgotten: int | None = None

    def add(self, first: int, last: int, *, opened_ns: int) -> None:
        """Add the numbers from `first` to `last`, missing since `opened_ns`."""
        place = bisect_right(self._firsts, first)
        self._firsts.insert(place, first)
        self._gaps.insert(place, (last, opened_ns))
        if len(self._firsts) > MOST_GAPS:
            del self._firsts[0]
            self.forgotten, _ = self._gaps.pop(0)

    def take(self, number: int) -> int | None:
        """Return since when a number was missing, and forget it; None if not given up."""
        place = bisect_right(self._firsts, number) - 1
        if place < 0 or self._gaps[place][0] < number:
            return None
        first, (last, opened_ns) = self._firsts[place], self._gaps[place]
        left = [(first, number - 1), (number + 1, last)]
        rest = [(a, b) for a, b in left if a <= b]
        self._firsts[place : place + 1] = [a for a, _ in rest]
        self._gaps[place : place + 1] = [(b, opened_ns) for _, b in rest]
        return opened_ns

    def is_forgotten(self, number: int) -> bool:
        """Whether a number is too old to be remembered."""
        return self.forgotten is not None and number <= self.forgotten

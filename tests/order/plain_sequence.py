"""Order by sequence number written down row by row and number by number, as plain as it can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from slackwater.runtime.model import START_NS
from slackwater.runtime.order.sequence import BySequence


@dataclass
class Row:
    writer: int
    number: int  # as it comes, and once it has been taken as it goes on
    event_ns: int
    clock_ns: int
    newest_ns: int = START_NS  # of its writer, before


@dataclass
class Estimate:
    """Eq. 3.1-3.11 with all values kept."""

    policy: BySequence
    arrivals: list[int] = field(default_factory=list)
    avg: list[float] = field(default_factory=list)
    dev: list[float] = field(default_factory=list)
    held_avg: list[float] = field(default_factory=list)
    held_dev: list[float] = field(default_factory=list)

    def in_order(self, clock_ns: int) -> None:
        self.arrivals.append(clock_ns)
        if len(self.arrivals) > 1:
            between = self.arrivals[-1] - self.arrivals[-2]
            smooth(self.avg, self.dev, between, self.policy.alpha)

    def waited(self, delay_ns: int) -> None:
        smooth(self.held_avg, self.held_dev, delay_ns, self.policy.beta)

    @property
    def timeout_ns(self) -> int:
        if not self.avg:
            return self.policy.timeout_ns
        inter = self.avg[-1] + 2 * (self.dev[-1] if self.dev else 0.0)
        held = (self.held_avg or [0.0])[-1] + 2 * (self.held_dev or [0.0])[-1]
        return int(min(self.policy.timeout_ns, max(inter, held)))


def smooth(averages: list[float], deviations: list[float], value: int, weight: float) -> None:
    if not averages:
        averages.append(float(value))
        return
    averages.append(weight * averages[-1] + value * (1 - weight))
    off = abs(value - averages[-1])
    last = deviations[-1] if deviations else None
    deviations.append(off if last is None else weight * last + off * (1 - weight))


class Writer:
    def __init__(self, policy: BySequence) -> None:
        self.policy, self.estimate = policy, Estimate(policy)
        self.expected: int | None = None
        self.first = 0
        self.began_ns = START_NS
        self.came: dict[int, int] = {}  # {number that has come of this numbering: its event time}
        self.before: int | None = None  # the highest number of the numbering before
        self.older: int | None = None  # up to here all is older than the newest event
        self.buffer: dict[int, tuple[int, int]] = {}  # {number: (row, when it came)}
        self.missing: dict[int, tuple[int, int]] = {}  # {number: (open since, until)}
        self.given_up: dict[int, int] = {}  # {number: open since}
        self.timer_ns = self.head_ns = START_NS
        self.silent_ns, self.is_silent = START_NS, True
        self.released_ns = START_NS

    def due_ns(self) -> int | None:
        if not self.buffer:
            return None
        assert self.expected is not None
        opened_ns, until_ns = self.missing[self.expected]
        if self.policy.restart == "added":
            until_ns = min(self.timer_ns, opened_ns + self.policy.timeout_ns)
        return max(until_ns, self.head_ns)

    def begin(self, number: int) -> None:
        first = number
        if self.policy.first is not None:
            ahead = self.policy.in_column(number) - self.policy.first
            if self.policy.wraps is not None and ahead < 0:
                ahead += self.policy.numbers
            if 0 <= ahead < self.policy.reach:
                first = number - ahead
        self.first = self.expected = first

    def note(self, row: Row) -> None:
        """A row comes that is neither late nor a duplicate."""
        if row.event_ns > row.newest_ns:  # a number as low as this had an older event, if any
            self.older = min(max(self.came), row.number - 1) if self.came else None
        self.came[row.number] = row.event_ns

    def is_anew(self, row: Row) -> bool:
        if row.event_ns == row.newest_ns:
            return self.older is not None and row.number <= self.older
        return row.event_ns > row.newest_ns

    def is_of_before(self, row: Row, highest: int) -> bool:
        if row.event_ns == self.began_ns and self.before is not None:
            nearer = abs(row.number - self.before) < row.number - highest
            return nearer and row.number - self.before < self.before - highest
        return row.event_ns < self.began_ns

    def free(self) -> list[int]:
        """Take out what follows the expected number."""
        assert self.expected is not None
        freed = []
        while self.expected in self.buffer:
            freed.append(self.buffer.pop(self.expected)[0])
            self.expected += 1
        return freed

    def give_up(self, counts: dict[str, int]) -> list[int]:
        assert self.expected is not None
        while self.expected not in self.buffer:
            self.given_up[self.expected] = self.missing.pop(self.expected)[0]
            counts["given_up"] += 1
            self.expected += 1
        return self.free()


class PlainSequence:
    """The rows of one source. `steps` has (time, promised, rows that leave) of each step."""

    def __init__(self, policy: BySequence, *, writers: int, has_writers: bool) -> None:
        self.policy, self.has_writers = policy, has_writers
        self.writers = [Writer(policy) for _ in range(writers)]
        self.counts = dict.fromkeys(
            ["late", "late_dropped", "duplicates", "given_up", "renumbered"], 0
        )
        self.steps: list[tuple[int, int, list[int]]] = []
        self.rows: list[Row] = []
        self.promised_ns = START_NS
        self.pending: list[int] = []  # of the merge
        self.was_late: set[int] = set()
        self.first_ns: int | None = None

    def take(self, row: Row) -> None:
        self.pass_time(row.clock_ns)
        if self.first_ns is None:
            self.first_ns = row.clock_ns
        self.rows.append(row)
        at, one = len(self.rows) - 1, self.writers[row.writer]
        left: list[int] = []
        if one.expected is None:
            one.begin(row.number)
        assert one.expected is not None
        if self.policy.wraps is not None:  # whichever is nearest to the highest
            highest = max(one.buffer, default=one.expected - 1)
            turns = (highest - row.number) // self.policy.numbers
            near = [row.number + turn * self.policy.numbers for turn in range(turns - 1, turns + 3)]
            row.number = min(near, key=lambda number: (abs(number - highest), number))
        left += self.place(at, row, one)
        silence_ns = self.policy.silent_ns or one.estimate.timeout_ns
        one.silent_ns, one.is_silent = row.clock_ns + silence_ns, False
        due_ns = one.due_ns()
        if due_ns is not None:
            last = one.missing[max(one.missing)][1]
            one.silent_ns = max(one.silent_ns, due_ns, last)
        self.step(row.clock_ns, left)

    def place(self, at: int, row: Row, one: Writer) -> list[int]:  # noqa: PLR0911, PLR0912 - Fig. 4.2
        """Return what leaves with a row."""
        assert one.expected is not None
        number, highest = row.number, max(one.buffer, default=one.expected - 1)
        if number == one.expected:
            one.note(row)
            one.estimate.in_order(row.clock_ns)
            one.missing.pop(number, None)
            one.expected += 1
            waited = []
            while one.expected + len(waited) in one.buffer:
                waited.append(one.buffer[one.expected + len(waited)][1])
            for came_ns in waited:
                one.estimate.waited(row.clock_ns - came_ns)
            if waited:
                one.head_ns = row.clock_ns
            return [at, *one.free()]
        if number > one.expected:
            if number > highest and one.is_of_before(row, highest):
                return self.late(at)
            if number - highest > self.policy.reach:
                return self.anew(at, row, one)
            if number in one.buffer:
                if one.is_anew(row):
                    return self.anew(at, row, one)
                self.counts["duplicates"] += 1
                return []
            one.note(row)
            timeout_ns = one.estimate.timeout_ns
            for gap in range(highest + 1, number):
                one.missing[gap] = (row.clock_ns, row.clock_ns + timeout_ns)
            one.missing.pop(number, None)
            if not one.buffer:
                one.head_ns = START_NS
            one.buffer[number] = (at, row.clock_ns)
            one.timer_ns = row.clock_ns + timeout_ns
            return []
        if one.is_anew(row):
            return self.anew(at, row, one)
        if row.event_ns < one.began_ns:
            return self.late(at)
        if number in one.given_up:
            opened_ns = one.given_up.pop(number)
            if self.policy.learns_from_late:
                one.estimate.waited(row.clock_ns - opened_ns)
            return self.late(at)
        if number < one.first:
            one.given_up |= dict.fromkeys(range(number + 1, one.first), row.clock_ns)
            one.first = number
            return self.late(at)
        self.counts["duplicates"] += 1
        return []

    def late(self, at: int) -> list[int]:
        self.counts["late" if self.policy.passes_late else "late_dropped"] += 1
        self.was_late.add(at)
        return [at] if self.policy.passes_late else []

    def anew(self, at: int, row: Row, one: Writer) -> list[int]:
        left = []
        while one.buffer:
            left += one.give_up(self.counts)
        one.given_up = {}
        one.missing = {}
        one.began_ns = row.event_ns
        one.before, one.older, one.came = max(one.came, default=None), None, {}
        self.counts["renumbered"] += 1
        one.begin(row.number)
        return left + self.place(at, row, one)

    def pass_time(self, now_ns: int) -> None:
        while True:
            ends = []
            for name, one in enumerate(self.writers):
                due_ns = one.due_ns()
                if due_ns is not None:
                    ends.append((due_ns, 0, name))
                if self.has_writers and not one.is_silent:
                    ends.append((one.silent_ns, 1, name))
            if not ends or min(ends)[0] >= now_ns:
                return
            at_ns, kind, name = min(ends)
            one = self.writers[name]
            left = []
            if kind == 0:
                left = one.give_up(self.counts)
                one.head_ns = at_ns
            else:
                one.is_silent = True
            self.step(at_ns + 1, left)

    def finish(self, clock_ns: int) -> None:
        left = []
        for one in self.writers:
            while one.buffer:
                left += one.give_up(self.counts)
        if left or self.pending:
            self.step(clock_ns + 1, left, is_end=True)

    def step(self, time_ns: int, left: Sequence[int], *, is_end: bool = False) -> None:
        before_ns, out = self.promised_ns, []
        for at in left:
            row = self.rows[at]
            one = self.writers[row.writer]
            floor_ns = one.released_ns
            one.released_ns = max(one.released_ns, row.event_ns)
            if self.policy.merge:
                floor_ns = max(floor_ns, before_ns)
            if at not in self.was_late and row.event_ns < floor_ns:
                self.late(at)
                if not self.policy.passes_late:
                    continue
            (self.pending if self.policy.merge and at not in self.was_late else out).append(at)
        self.promised_ns = max(before_ns, self.least(time_ns))
        if self.policy.merge:
            ready = [
                at for at in self.pending if is_end or self.rows[at].event_ns <= self.promised_ns
            ]
            self.pending = [at for at in self.pending if at not in ready]
            # What had been held before comes first among equals, then what this step let go.
            fresh = [*ready, *out]
            rank = {
                at: (at not in held_before(ready, left), place) for place, at in enumerate(left)
            }
            out = sorted(fresh, key=lambda at: (self.rows[at].event_ns, rank.get(at, (False, -1))))
        self.steps.append((time_ns, self.promised_ns, out))

    def least(self, time_ns: int) -> int:
        if not self.has_writers:
            return self.writers[0].released_ns
        assert self.first_ns is not None
        if time_ns <= self.first_ns + (self.policy.silent_ns or self.policy.timeout_ns):
            return START_NS
        speaking = [one.released_ns for one in self.writers if not one.is_silent]
        return min(speaking, default=START_NS)


def held_before(ready: Sequence[int], left: Sequence[int]) -> set[int]:
    return {at for at in ready if at not in left}

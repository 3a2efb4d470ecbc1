"""The scope of a match is a stretch of limited length, or a window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from slackwater.runtime.model.state import Fields
from slackwater.runtime.patterns.log import Log


class Window(NamedTuple):
    """A window of a key.

    Attributes:
        key: greater for a window that opens later.
        low: the least number that an event of it can have.
        start_ns: its beginning, in event time.
        end_ns: events of this time or later are after it; None if it ends by number.
        end: events of this number or a greater one are after it; None if it ends by time.
    """

    key: int
    low: int
    start_ns: int
    end_ns: int | None
    end: int | None


@dataclass(frozen=True)
class Within:
    """A stretch of limited length from any event on; exactly one limit is given."""

    span_ns: int | None = None
    events: int | None = None

    def low(self, number: int, time_ns: int, log: Log) -> int:
        """Return the least number that is in reach of an event."""
        if self.events is not None:
            return number - self.events + 1
        assert self.span_ns is not None
        return log.number_at(time_ns - self.span_ns)


class Windows(Protocol):
    """The windows of one key, as they open and end."""

    STATE: Fields

    def pass_to(self, number: int, time_ns: int) -> None:
        """Forget windows that have ended when an event of this number and time comes."""
        ...

    def take(self, number: int, time_ns: int, fits: tuple[int, ...]) -> None:
        """Open the windows that begin with an event."""
        ...

    def around(self, after: int | None, start: int, log: Log) -> Iterator[Window]:
        """Yield the windows of the last event that begin by number `start`.

        In the order in which they opened; those up to key `after` are left out.
        """
        ...

    def low(self, log: Log) -> int | None:
        """Return the least number that an open window has; None if no window is open."""
        ...

    def oldest(self) -> int:
        """Return the key of the oldest open window, or of one to come."""
        ...

    def newest(self) -> int:
        """Return the key of the window that opened last."""
        ...


@dataclass(frozen=True)
class TimeWindows:
    """Windows by event time: [k · slide, k · slide + size)."""

    size_ns: int
    slide_ns: int

    def begin(self) -> _TimeRun:
        """Return the windows of a key."""
        return _TimeRun(self)


@dataclass(frozen=True)
class CountWindows:
    """Windows of so many events: one from the first, one after each `every` more."""

    size: int
    every: int

    def begin(self) -> _ListRun:
        """Return the windows of a key."""
        return _ListRun(self)


@dataclass(frozen=True)
class OpenedWindows:
    """A window from each event that fits `asked` on; exactly one length is given.

    Attributes:
        asked: the number in the pattern of the event that opens it.
        span_ns: its length; an event at its end is after it.
        events: the number of its events.
    """

    asked: int
    span_ns: int | None = None
    events: int | None = None

    def begin(self) -> _ListRun:
        """Return the windows of a key."""
        return _ListRun(self)


WindowRule = TimeWindows | CountWindows | OpenedWindows


class _TimeRun:
    STATE = Fields("_time_ns")

    def __init__(self, rule: TimeWindows) -> None:
        self._rule = rule
        self._time_ns = 0

    def pass_to(self, number: int, time_ns: int) -> None:
        del number
        self._time_ns = time_ns

    def take(self, number: int, time_ns: int, fits: tuple[int, ...]) -> None:
        del number, time_ns, fits

    def around(self, after: int | None, start: int, log: Log) -> Iterator[Window]:
        rule, time_ns = self._rule, self._time_ns
        first = (time_ns - rule.size_ns) // rule.slide_ns + 1
        if after is not None:
            first = max(first, after + 1)
        for key in range(first, time_ns // rule.slide_ns + 1):
            start_ns = key * rule.slide_ns
            low = log.number_at(start_ns)
            if low > start:
                return
            yield Window(key, low, start_ns, start_ns + rule.size_ns, None)

    def low(self, log: Log) -> int | None:
        rule = self._rule
        return log.number_at(self.oldest() * rule.slide_ns)

    def oldest(self) -> int:
        return (self._time_ns - self._rule.size_ns) // self._rule.slide_ns + 1

    def newest(self) -> int:
        return self._time_ns // self._rule.slide_ns


class _ListRun:
    """Windows that are listed while they are open."""

    STATE = Fields("_open", "_ended", "_keys", elements={"_open": Window})

    def __init__(self, rule: CountWindows | OpenedWindows) -> None:
        self._rule = rule
        self._open: list[Window] = []
        self._ended = 0  # of the list, from its beginning
        self._keys = 0

    def pass_to(self, number: int, time_ns: int) -> None:
        windows, ended = self._open, self._ended
        while ended < len(windows):
            window = windows[ended]
            if window.end_ns is not None and time_ns < window.end_ns:
                break
            if window.end is not None and number < window.end:
                break
            ended += 1
        if ended > 32 and 2 * ended > len(windows):
            del windows[:ended]
            ended = 0
        self._ended = ended

    def take(self, number: int, time_ns: int, fits: tuple[int, ...]) -> None:
        rule = self._rule
        if isinstance(rule, CountWindows):
            if (number - 1) % rule.every == 0:
                self._add(number, time_ns, None, number + rule.size)
        elif rule.asked in fits:
            if rule.events is not None:
                self._add(number, time_ns, None, number + rule.events)
            else:
                assert rule.span_ns is not None
                self._add(number, time_ns, time_ns + rule.span_ns, None)

    def _add(self, number: int, time_ns: int, end_ns: int | None, end: int | None) -> None:
        self._open.append(Window(self._keys, number, time_ns, end_ns, end))
        self._keys += 1

    def around(self, after: int | None, start: int, log: Log) -> Iterator[Window]:
        del log
        windows = self._open
        first = self._ended
        if after is not None and first < len(windows):
            first = max(first, first + after + 1 - windows[first].key)
        for i in range(first, len(windows)):
            if windows[i].low > start:
                return
            yield windows[i]

    def low(self, log: Log) -> int | None:
        del log
        return self._open[self._ended].low if self._ended < len(self._open) else None

    def oldest(self) -> int:
        return self._open[self._ended].key if self._ended < len(self._open) else self._keys

    def newest(self) -> int:
        return self._keys - 1

"""Windows by number, and sets of windows as ranges of numbers.

```
size 3, slide 2      window k is [k·slide, k·slide + size)
window 0  [0--)      ends at 3
window 1    [2--)    ends at 5
```
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Int64Array, format_ns
from slackwater.runtime.model.state import Fields

Number = TypeVar("Number", int, Int64Array)
"""A whole number, or an array of them."""


@dataclass(frozen=True)
class WindowEnds:
    """Windows [start, start + size) of event time, in ns; start is offset + k·slide.

    The numbers k are all whole numbers.

    A slide above the size leaves holes: rows in a hole are in no window.

    Raises:
        SettingError: a length is not positive.
    """

    size_ns: int
    slide_ns: int
    offset_ns: int = 0

    def __post_init__(self) -> None:
        if self.size_ns <= 0 or self.slide_ns <= 0:
            raise SettingError(
                f"windows of size {self.size_ns} ns and slide {self.slide_ns} ns: both must be "
                "more than zero; write them like '1s'"
            )

    @property
    def shift_ns(self) -> int:
        """Time by which windows are later than columns show; 0 by default."""
        return 0

    @property
    def text(self) -> str:
        """Text of the windows in `explain`."""
        return f"{format_ns(self.size_ns)} every {format_ns(self.slide_ns)}"

    def start_ns(self, window: Number) -> Number:
        """Return the start of a window; of each in an array of any shape."""
        start: Number = window * self.slide_ns + self.offset_ns
        return start

    def end_ns(self, window: Number) -> Number:
        """Return the end of a window; of each in an array of any shape."""
        end: Number = window * self.slide_ns + (self.offset_ns + self.size_ns)
        return end

    def first_after(self, event_time_ns: Number) -> Number:
        """Return the first window that ends after a time: all windows before it have ended."""
        first: Number = (event_time_ns - (self.offset_ns + self.size_ns)) // self.slide_ns + 1
        return first

    def last_begun(self, event_time_ns: Number) -> Number:
        """Return the last window that begins at or before a time."""
        last: Number = (event_time_ns - self.offset_ns) // self.slide_ns
        return last


def merged(firsts: Int64Array, lasts: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the union of ranges as ascending ranges that do not touch, without empty ones.

    Args:
        firsts: shape (ranges,), the first number of each.
        lasts: shape (ranges,), the last number of each, inclusive.
    """
    there = firsts <= lasts
    if not there.all():
        firsts, lasts = firsts[there], lasts[there]
    if not len(firsts):
        return firsts, lasts
    if (firsts[1:] < firsts[:-1]).any():
        order = np.argsort(firsts, kind="stable")
        firsts, lasts = firsts[order], lasts[order]
    lasts = np.maximum.accumulate(lasts)
    starts = np.flatnonzero(np.concatenate([[True], firsts[1:] > lasts[:-1] + 1]))
    return firsts[starts], lasts[np.append(starts[1:] - 1, -1)]


def exact_sum(values: Int64Array) -> int:
    """Return the sum of fewer than 2³¹ whole numbers, which may exceed 64 bits."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFF_FFFF).sum())


MOST_RANGES = 65_536
"""Most ranges of a set: with more the older half is forgotten."""


class Ranges:
    """Set of whole numbers, kept as ranges that do not touch.

    It is small where numbers lie together. It is bounded: the least numbers are forgotten first.
    """

    STATE = Fields("_firsts", "_lasts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []  # inclusive

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def add(self, first: int, last: int) -> int:
        """Add first … last; return how many are new."""
        if last < first:
            return 0
        if not self._lasts or first > self._lasts[-1] + 1:  # the usual case
            self._append(first, last)
            return last - first + 1
        if first >= self._firsts[-1]:
            new = max(0, last - self._lasts[-1])
            self._lasts[-1] += new
            return new
        begin = bisect_left(self._lasts, first - 1)  # the first range that first … last touches
        stop = bisect_right(self._firsts, last + 1)
        new = last - first + 1
        if begin < stop:
            for low, high in zip(self._firsts[begin:stop], self._lasts[begin:stop], strict=True):
                new -= max(0, min(high, last) - max(low, first) + 1)
            first = min(first, self._firsts[begin])
            last = max(last, self._lasts[stop - 1])
        self._firsts[begin:stop] = [first]
        self._lasts[begin:stop] = [last]
        return new

    def add_all(self, firsts: Int64Array, lasts: Int64Array) -> int:
        """Add ascending ranges that do not touch; return how many numbers are new."""
        new = at = 0
        while at < len(firsts) and self._lasts and firsts[at] <= self._lasts[-1] + 1:
            new += self.add(int(firsts[at]), int(lasts[at]))
            at += 1
        self._firsts += firsts[at:].tolist()
        self._lasts += lasts[at:].tolist()
        self._forget()
        return new + int((lasts[at:] - firsts[at:] + 1).sum())

    def _append(self, first: int, last: int) -> None:
        self._firsts.append(first)
        self._lasts.append(last)
        self._forget()

    def _forget(self) -> None:
        if len(self._firsts) > MOST_RANGES:
            del self._firsts[: -MOST_RANGES // 2], self._lasts[: -MOST_RANGES // 2]

    def within(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the ranges within first … last, each as its first and last number."""
        begin = bisect_left(self._lasts, first)
        stop = bisect_right(self._firsts, last)
        return [
            (max(low, first), min(high, last))
            for low, high in zip(self._firsts[begin:stop], self._lasts[begin:stop], strict=True)
        ]

"""A closing policy of a few lines: what those that are written otherwise must equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.runtime.closing.policy import ClosedWindows, ClosingCounts
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model import END_NS, START_NS, Int64Array


@dataclass(frozen=True)
class EndAndAWhile:
    """Closes a window a while behind its end, by arrivals, whatever has come."""

    wait_ns: int
    type: str | None = None
    text: str = "a while behind the end"

    def part(self, of: int) -> EndAndAWhile:
        del of
        return self

    def begin(self, windows: WindowEnds) -> EndAndAWhileRun:
        return EndAndAWhileRun(self.wait_ns, windows)


class EndAndAWhileRun:
    """Its chance of missing rows is the number of types that it has seen."""

    def __init__(self, wait_ns: int, windows: WindowEnds) -> None:
        self.wait_ns, self.windows = wait_ns, windows
        self.now_ns, self.ends_ns, self.told_ns = START_NS, START_NS, START_NS
        self.types = self.rows = 0
        self.new: list[tuple[int, int, float]] = []
        self.first: int | None = None

    def observe(
        self, types: Int64Array, event_time_ns: Int64Array, arrival_ns: Int64Array
    ) -> Int64Array:
        assert (np.diff(arrival_ns) >= 0).all()
        assert arrival_ns.item(0) >= self.now_ns
        closed = []
        for kind, time_ns, now_ns in zip(
            types.tolist(), event_time_ns.tolist(), arrival_ns.tolist(), strict=True
        ):
            closed.append(self.pass_time(now_ns))
            assert 0 <= kind <= self.types
            self.types = max(self.types, kind + 1)
            window = self.windows.first_after(time_ns)
            self.first = window if self.first is None else min(window, self.first)
            self.rows += 1
        return np.array(closed, dtype=np.int64)

    def hold(self, is_held: bool) -> None:
        """Whatever has come it closes by time."""

    def pass_time(self, now_ns: int) -> int:
        assert now_ns >= self.now_ns
        # A row may open a window whose time has passed: it closes once time moves. Time that is
        # passed twice must not show, as how often it is passed depends on cuts.
        has_moved, self.now_ns = now_ns > self.now_ns, now_ns
        if self.first is not None and has_moved:
            while (end_ns := self.windows.end_ns(self.first)) + self.wait_ns <= now_ns:
                if end_ns > self.ends_ns:
                    self.ends_ns = end_ns
                    self.new.append((end_ns, end_ns + self.wait_ns, float(self.types)))
                self.first += 1
        return self.ends_ns

    def next_ns(self) -> int | None:
        return None if self.first is None else self.windows.end_ns(self.first) + self.wait_ns

    def closings(self) -> ClosedWindows:
        ends, at, chances = zip(*self.new, strict=True) if self.new else ((), (), ())
        self.new = []
        return ClosedWindows(
            np.array(ends, np.int64), np.array(at, np.int64), np.array(chances, np.float64)
        )

    def counts(self) -> ClosingCounts:
        return ClosingCounts(0, 0, 0, 0, None)

    def finish(self) -> int:
        return END_NS

    def snapshot(self) -> dict[str, Any]:
        return {**vars(self), "windows": None, "new": list(self.new)}

    def restore(self, state: dict[str, Any]) -> None:
        vars(self).update({**state, "windows": self.windows, "new": list(state["new"])})

"""What each slot of a job last said of itself, kept while its driver merely waits.

Of a worker that is killed it is all there is: how many rows of its sinks nobody can see, above all.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError

from actors.slot_report import SlotReport

__all__ = ["LastHeard"]

EVERY_S = 1.0
"""How often each slot is asked; its report takes it a fraction of a millisecond."""
TAKE_S = 3.0
"""For an answer that is there already."""


class LastHeard:
    """Asks the slots for their reports, and waits for none of them.

    Args:
        actors: {slot: its actor}.
        reports: {slot: its newest report}, to be kept.
    """

    def __init__(self, actors: Mapping[str, Any], reports: dict[str, SlotReport]) -> None:
        self._actors, self._reports = dict(actors), reports
        self._calls: dict[Any, str] = {}  # {call: its slot}
        self._next_s = 0.0

    def look(self, over: Collection[str] = ()) -> None:
        """Take what has come, and ask again; not those that are over."""
        if self._calls:
            calls = list(self._calls)
            there = ray.wait(calls, num_returns=len(calls), timeout=0)[0]
            self.take({call: self._calls.pop(call) for call in there}, over)
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        asked = {*self._calls.values(), *over}
        for name, actor in self._actors.items():
            if name not in asked:
                self._calls[actor.call.remote("report")] = name

    def take(self, calls: Mapping[Any, str], over: Collection[str]) -> None:
        """Keep the answers to calls that have returned, {call: its slot}, unless newer are here."""
        for call, name in calls.items():
            if name in over:
                continue
            with suppress(RayError):  # its death is named elsewhere; its last report stands
                found: SlotReport = ray.get(call, timeout=TAKE_S)
                known = self._reports.get(name)
                if known is None or (known.at_ns or 0) <= (found.at_ns or 0):
                    self._reports[name] = found

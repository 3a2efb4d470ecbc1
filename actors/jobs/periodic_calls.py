"""Repeat calls to slots, one at a time to each, without waiting.

A call costs the slot's process 1 ms of CPU, more than the whole loop of a job that only waits. So
the slot delays its answer until it has news, for `WITHIN_S` at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError

from slackwater.actors.slot.report import SlotReport

__all__ = ["WITHIN_S", "LatestReports", "PeriodicCalls"]

WITHIN_S = 10.0
"""How long a slot may delay its answer."""


class PeriodicCalls:
    """Repeats the same call to slots. From one thread.

    Args:
        actors: {slot: its Ray actor}.
        ask: makes the call to an actor, and returns Ray's reference to the answer.
        every_s: shortest time between calls; a slot's next call waits for its last answer.
    """

    def __init__(
        self, actors: Mapping[str, Any], ask: Callable[[Any], Any], *, every_s: float
    ) -> None:
        self._actors, self._ask, self._every_s = dict(actors), ask, every_s
        self._calls: dict[Any, str] = {}  # {call: its slot}
        self._next_s = 0.0

    def ask_too(self, actors: Mapping[str, Any]) -> None:
        """Call these slots, too, from now on: {slot: its actor}."""
        self._actors |= actors

    def returned(self) -> dict[Any, str]:
        """Return calls that were answered or have failed, {call: its slot}; each once."""
        calls = list(self._calls)
        if not calls:
            return {}
        done = ray.wait(calls, num_returns=len(calls), timeout=0)[0]
        return {call: self._calls.pop(call) for call in done}

    def under_way(self, slot: str) -> list[Any]:
        """Return the open calls to a slot: one, or none."""
        return [call for call, name in self._calls.items() if name == slot]

    def make(self, over: Iterable[str] = ()) -> None:
        """Call again when due, except slots that are over or owe an answer."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + self._every_s
        skipped = {*self._calls.values(), *over}
        for name, actor in self._actors.items():
            if name not in skipped:
                self._calls[self._ask(actor)] = name


EVERY_S = 1.0
"""How often each slot is asked while it works; a waiting slot has nothing new to report."""
TAKE_S = 3.0
"""Time limit to fetch an answer that has arrived."""


class LatestReports:
    """Asks the slots for their reports, and waits for none.

    Of a killed worker this is all that is known, above all how many sink rows readers cannot see.

    Args:
        actors: {slot: its Ray actor}.
        reports: {slot: its newest report}, updated here.
    """

    def __init__(self, actors: Mapping[str, Any], reports: dict[str, SlotReport]) -> None:
        self._reports = reports
        self._calls = PeriodicCalls(
            actors, lambda actor: actor.call.remote("news", WITHIN_S), every_s=EVERY_S
        )

    def ask_too(self, actors: Mapping[str, Any]) -> None:
        """Ask these slots, too, from now on."""
        self._calls.ask_too(actors)

    def look(self, over: Collection[str] = ()) -> None:
        """Keep new reports, and ask again, except slots that are over."""
        self.take(self._calls.returned(), over)
        self._calls.make(over)

    def take(self, calls: Mapping[Any, str], over: Collection[str]) -> None:
        """Keep the answers of returned calls, {call: its slot}, unless newer are here."""
        for call, name in calls.items():
            if name in over:
                continue
            with suppress(RayError):  # its death is reported elsewhere; its last report stands
                report: SlotReport = ray.get(call, timeout=TAKE_S)
                known = self._reports.get(name)
                if known is None or (known.at_ns or 0) <= (report.at_ns or 0):
                    self._reports[name] = report

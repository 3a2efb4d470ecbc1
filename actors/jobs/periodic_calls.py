"""Calls to slots, made again and again, one at a time to each; nobody here waits for them.

A call costs the slot's process a millisecond of CPU, a job that only waits more than its own loop.
So the slot holds its answer back until there is something to say, for `WITHIN_S` at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import ray

__all__ = ["WITHIN_S", "PeriodicCalls"]

WITHIN_S = 10.0
"""How long a slot may hold its answer back."""


class PeriodicCalls:
    """Asks slots the same again and again. From one thread.

    Args:
        actors: {slot: its actor}.
        ask: makes the call to an actor, and returns Ray's reference to the answer.
        every_s: how often at most: a call waits until the last one to its slot was answered.
    """

    def __init__(
        self, actors: Mapping[str, Any], ask: Callable[[Any], Any], *, every_s: float
    ) -> None:
        self._actors, self._ask, self._every_s = dict(actors), ask, every_s
        self._calls: dict[Any, str] = {}  # {call: its slot}
        self._next_s = 0.0

    def ask_too(self, actors: Mapping[str, Any]) -> None:
        """Ask these, too, from now on: {slot: its actor}."""
        self._actors |= actors

    def returned(self) -> dict[Any, str]:
        """Return those that have an answer, or have failed, {call: its slot}; each once."""
        calls = list(self._calls)
        if not calls:
            return {}
        there = ray.wait(calls, num_returns=len(calls), timeout=0)[0]
        return {call: self._calls.pop(call) for call in there}

    def under_way(self, slot: str) -> list[Any]:
        """Return the calls to a slot that were not returned yet: one, or none."""
        return [call for call, name in self._calls.items() if name == slot]

    def make(self, over: Iterable[str] = ()) -> None:
        """Ask again, if it is time: not those that are over, or have not answered yet."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + self._every_s
        asked = {*self._calls.values(), *over}
        for name, actor in self._actors.items():
            if name not in asked:
                self._calls[self._ask(actor)] = name

"""What users' functions print in the slots of a job, on the terminal of its driver (stderr)."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

import ray
from ray.exceptions import RayError

from actors.user_output import Line, runs_users_code
from runtime.flow.plan import Plan

__all__ = ["Echo"]

EVERY_S = 0.5
LAST_S = 1.0
"""How long the end of a slot waits for lines that it was asked for before."""


class Echo:
    """Asks the slots that run users' code what was printed there; waits for none of them.

    Args:
        plan: the job's.
        actors: {slot: its actor}.
    """

    def __init__(self, plan: Plan, actors: Mapping[str, Any]) -> None:
        speaking = {plan.slots[stage.name] for stage in plan.stages if runs_users_code(stage)}
        self._actors = {name: actor for name, actor in actors.items() if name in speaking}
        self._calls: dict[Any, str] = {}  # {call: its slot}
        self._next_s = 0.0

    def look(self, over: Iterable[str] = ()) -> None:
        """Print what has come, and ask again; not those that are over."""
        if not self._actors:
            return
        self._take()
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        asked = {*self._calls.values(), *over}
        for name, actor in self._actors.items():
            if name not in asked:
                self._calls[actor.said.remote()] = name

    def show_last(self, slot: str, lines: Iterable[Line]) -> None:
        """Print the lines of a slot that has ended, behind those that are on their way."""
        calls = [call for call, name in self._calls.items() if name == slot]
        if calls and not ray.wait(calls, timeout=LAST_S)[1]:
            self._take()
        self.show(lines)

    def _take(self) -> None:
        if not self._calls:
            return
        for call in ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0)[0]:
            del self._calls[call]
            with contextlib.suppress(RayError):  # its death is named elsewhere
                self.show(ray.get(call, timeout=LAST_S))

    def show(self, lines: Iterable[Line]) -> None:
        """Print lines on stderr: what is on stdout is the driver's own, perhaps one JSON object.

        Where nobody reads it any more (`2>&1 | head`), they are in the worker's log.
        """
        with contextlib.suppress(OSError, ValueError):  # the pipe is broken, the stream is closed
            for line in lines:
                print(line.text, file=sys.stderr, flush=True)  # noqa: T201 the user's own words

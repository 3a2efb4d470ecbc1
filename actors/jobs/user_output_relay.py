"""Show lines of a job's slots on its driver's terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import ray
from ray.exceptions import RayError

from slackwater.actors.jobs.periodic_calls import WITHIN_S, PeriodicCalls
from slackwater.actors.sinks.slot_sinks import print_line
from slackwater.actors.slot.user_output import OutputLine, runs_users_code
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.terminal_text import sanitized

__all__ = ["UserOutputRelay"]

EVERY_S = 0.5
LAST_S = 1.0
"""How long the end of a slot waits for lines that were asked for before."""


class UserOutputRelay:
    """Asks slots with users' code for their output lines; waits for none.

    Args:
        plan: plan of the job.
        actors: {slot: its Ray actor}.
    """

    def __init__(self, plan: Plan, actors: Mapping[str, Any]) -> None:
        speakers = _speakers(plan, actors)
        self._calls = PeriodicCalls(
            speakers, lambda actor: actor.output.remote(WITHIN_S), every_s=EVERY_S
        )

    def moved(self, plan: Plan, actors: Mapping[str, Any]) -> None:
        """Ask the slots, too, that run users' code now."""
        self._calls.ask_too(_speakers(plan, actors))

    def look(self, over: Iterable[str] = ()) -> None:
        """Print new lines, and ask again, except slots that are over."""
        self._take()
        self._calls.make(over)

    def show_last(self, slot: str, lines: Iterable[OutputLine]) -> None:
        """Print the last lines of a slot that has ended, after lines on their way."""
        calls = self._calls.under_way(slot)
        if calls and not ray.wait(calls, timeout=LAST_S)[1]:
            self._take()
        self.show(lines)

    def _take(self) -> None:
        for call in self._calls.returned():
            with contextlib.suppress(RayError):  # its death is reported elsewhere
                self.show(ray.get(call, timeout=LAST_S))

    def show(self, lines: Iterable[OutputLine]) -> None:
        """Print lines on stderr, and on stdout those that a sink shows.

        Otherwise stdout is the driver's own, perhaps one JSON object. Lines may hold data from
        outside, so no terminal may obey them. If the stream has no reader (`2>&1 | head`), they
        remain in the worker's log.
        """
        for line in lines:
            text = sanitized(line.text)
            if line.is_result:
                print_line(text)
                continue
            with contextlib.suppress(OSError, ValueError):  # as in `print_line`
                print(text, file=sys.stderr, flush=True)  # noqa: T201 the user's own words


def _speakers(plan: Plan, actors: Mapping[str, Any]) -> dict[str, Any]:
    speaking = {plan.slots[stage.name] for stage in plan.stages if runs_users_code(stage)}
    return {name: actor for name, actor in actors.items() if name in speaking}

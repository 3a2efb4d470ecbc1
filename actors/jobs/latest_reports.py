"""What each slot of a job last said of itself, kept while its driver merely waits.

Of a worker that is killed it is all there is: how many rows of its sinks nobody can see, above all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError

from slackwater.actors.jobs.periodic_calls import WITHIN_S, PeriodicCalls
from slackwater.actors.slot.report import SlotReport

__all__ = ["LatestReports"]

EVERY_S = 1.0
"""How often each slot is asked while it works; one that waits has nothing new to say."""
TAKE_S = 3.0
"""For an answer that is there already."""


class LatestReports:
    """Asks the slots for their reports, and waits for none of them.

    Args:
        actors: {slot: its actor}.
        reports: {slot: its newest report}, to be kept.
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
        """Take what has come, and ask again; not those that are over."""
        self.take(self._calls.returned(), over)
        self._calls.make(over)

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

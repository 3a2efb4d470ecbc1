"""Keep each slot's newest report while its driver merely waits.

Of a killed worker this is all that is known, above all how many sink rows readers cannot see.
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
"""How often each slot is asked while it works; a waiting slot has nothing new to report."""
TAKE_S = 3.0
"""Time limit to fetch an answer that has arrived."""


class LatestReports:
    """Asks the slots for their reports, and waits for none.

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

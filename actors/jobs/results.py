"""Keep the rows of a job's collect sinks, here once the job has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from slackwater.actors.slot.actor import Piece
from slackwater.runtime.errors import ClusterError, SlackwaterError, WorkerDied
from slackwater.runtime.plan.plan import Plan

__all__ = ["Results"]

FETCH_S = 60.0
"""Time limit to fetch the rows of one sink: gigabytes take long."""


class Results:
    """Rows of the collect sinks of one job, as Arrow IPC streams.

    Args:
        actors: {slot: its Ray actor}.
    """

    def __init__(self, plan: Plan, actors: Mapping[str, Any]) -> None:
        self._plan, self._actors = plan, actors
        self._encoded: dict[str, bytes] = {}
        self._missing: dict[str, SlackwaterError] = {}  # {sink: why its rows are missing}
        self._lock = threading.Lock()  # one fetch at a time: a slot keeps the pieces of one sink

    @property
    def fetched(self) -> list[str]:
        """Sinks whose rows are here."""
        return list(self._encoded)

    def moved(self, plan: Plan) -> None:
        """Record that sinks have moved to other slots."""
        self._plan = plan

    def fetch(self, sink: str) -> bytes:
        """Return the rows that a sink has so far.

        Raises:
            WorkerDied: the rows died with their worker.
            ClusterError: the rows did not come within `FETCH_S`.
        """
        slot = self._plan.slots[sink]
        try:
            with self._lock:
                return _whole(self._actors[slot], sink)
        except GetTimeoutError as problem:
            raise ClusterError(
                f"the results of sink {sink!r} did not come from slot {slot!r} within "
                f"{FETCH_S:g} s: they are many, or their host is slow; use a file sink for them"
            ) from problem
        except (RayError, OSError) as problem:  # an OSError: the cluster is lost
            raise self._gone(sink) from problem

    def keep(self, sinks: Iterable[str]) -> list[str]:
        """Fetch the rows of sinks whose slots are to end; return the problems."""
        for sink in sinks:
            try:
                self._encoded[sink] = self.fetch(sink)
            except SlackwaterError as problem:
                self._missing[sink] = problem
        return [str(problem) for problem in self._missing.values()]

    def of(self, sink: str) -> bytes:
        """Return the rows that a sink had at the end.

        Raises:
            WorkerDied, ClusterError: the rows are missing; says why.
        """
        if sink not in self._encoded:
            raise self._missing.get(sink) or self._gone(sink)
        return self._encoded[sink]

    def _gone(self, sink: str) -> WorkerDied:
        return WorkerDied(
            f"the results of sink {sink!r} are gone with the worker of slot "
            f"{self._plan.slots[sink]!r}; write them to a file sink where they must outlive it"
        )


def _whole(actor: Any, sink: str) -> bytes:
    until_s = time.monotonic() + FETCH_S
    rows = bytearray()
    while True:
        call = actor.collected.remote(sink, len(rows))
        piece: Piece = ray.get(call, timeout=max(until_s - time.monotonic(), 0))
        rows += piece.data
        if len(rows) >= piece.of_bytes:
            return bytes(rows)

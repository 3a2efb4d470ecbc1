"""A coordinator whose cluster's store fails, in its own process: for a while, or for good."""

from __future__ import annotations

from typing import Any

from slackwater.actors.jobs import coordinator
from slackwater.actors.jobs.records import RayStore, Records

STARTED = 2  # writes, before there is anything to write of a job that runs
FAILURES = 5


class FailingStore(RayStore):
    """Refuses some of what it is given once the job runs.

    Args:
        failures: how many; None: all.
    """

    def __init__(self, failures: int | None) -> None:
        self._failures = failures
        self._puts = 0

    def put(self, key: str, value: bytes) -> None:
        self._puts += 1
        late = self._puts - STARTED
        if late > 0 and (self._failures is None or late <= self._failures):
            raise ConnectionError("the store does not answer")
        super().put(key, value)


class TroubledCoordinator(coordinator.Coordinator):
    failures: int | None = FAILURES

    def __init__(self, *args: Any) -> None:
        coordinator.RECORD_EVERY_S = 0.1
        coordinator.KEEP_S = 1.0
        super().__init__(*args)
        self._records = Records(FailingStore(self.failures))


class ForsakenCoordinator(TroubledCoordinator):
    failures = None

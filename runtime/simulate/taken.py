"""Sinks of which each is a call: for runs that only want to see what leaves."""

from __future__ import annotations

from collections.abc import Callable

from slackwater.runtime.model import Batch
from slackwater.runtime.schedule import Written

__all__ = ["Egressed", "Taken"]

Egressed = Callable[[str, Batch | None, bool], object]
"""(sink stage, rows or None, whether its stream has ended): take the results, and nothing else."""


class Taken:
    """Hands over what leaves, and the end of each sink's stream."""

    def __init__(self, egress: Egressed) -> None:
        self._egress = egress

    def write(self, sink: str, batch: Batch) -> Written:
        """Hand over rows."""
        self._egress(sink, batch, False)
        return Written()

    def publish(self, sink: str) -> int | None:
        """Nothing waits."""
        del sink
        return None

    def close(self, sink: str, state: str) -> None:
        """Tell the end, if it is one."""
        if state == "done":
            self._egress(sink, None, True)

    def abort(self, sink: str, error: str) -> None:
        """Nothing to finish."""

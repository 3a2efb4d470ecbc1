"""Sinks that pass results to a function, for runs that only look at results."""

from __future__ import annotations

from collections.abc import Callable

from slackwater.runtime.model import Batch
from slackwater.runtime.schedule import Written

__all__ = ["Egressed", "Taken"]

Egressed = Callable[[str, Batch | None, bool], object]
"""(sink stage, rows or None, whether its stream has ended): take results."""


class Taken:
    """Sink port that passes results and ends of streams to a function."""

    def __init__(self, egress: Egressed) -> None:
        self._egress = egress

    def write(self, sink: str, batch: Batch) -> Written:
        """Pass rows to the function."""
        self._egress(sink, batch, False)
        return Written()

    def publish(self, sink: str) -> int | None:
        """Do nothing: no row waits."""
        del sink
        return None

    def close(self, sink: str, state: str) -> None:
        """Pass the end of the stream, if it has ended."""
        if state == "done":
            self._egress(sink, None, True)

    def abort(self, sink: str, error: str) -> None:
        """Do nothing: no output is open."""

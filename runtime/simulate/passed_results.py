"""Sinks that pass results to a function, for runs that only look at results."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slackwater.runtime.model import START_NS, Batch

__all__ = ["Egressed", "PassedResults"]

Egressed = Callable[[str, Batch | None, bool], object]
"""(sink stage, rows or None, whether its stream has ended): take results."""


class PassedResults:
    """Sink port that passes results and ends of streams to a function."""

    def __init__(self, egress: Egressed) -> None:
        self._egress = egress

    def clock_ns(self) -> int:
        """Return no time: no row waits."""
        return START_NS

    def begin(self) -> Mapping[str, int]:
        """Do nothing: no earlier run has committed rows."""
        return {}

    def write(self, sink: str, batch: Batch, first_ordinal: int) -> None:
        """Pass rows to the function."""
        del first_ordinal
        self._egress(sink, batch, False)

    def end(self, sink: str) -> None:
        """Pass the end of the stream."""
        self._egress(sink, None, True)

    def flush(self, sink: str) -> None:
        """Do nothing: no row waits."""

    def commit(self, sink: str) -> None:
        """Do nothing: no row waits."""

    def close(self, sink: str) -> None:
        """Do nothing: no output is open."""

    def abort(self, sink: str, error: str) -> None:
        """Do nothing: no output is open."""

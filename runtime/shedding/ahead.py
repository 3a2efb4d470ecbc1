"""The age of events when they reach an operator, whatever waits there."""

from __future__ import annotations

from math import exp

from slackwater.runtime.model.state import Fields

BUSY = 0.9
"""From this share of busy time on events are taken to wait for the work on others."""


class Ahead:
    """Ahead separates the time that events waited upstream from their time in this operator.

    Gates that put events in order make them old, and so do steps upstream: nothing that is dropped
    here makes them younger. A slot has time to spare now and then unless there is too much work;
    the youngest event that comes then has waited for nothing here. While there is no time to spare,
    the youngest tells the most that this age can be.

    Args:
        horizon_ns: the age is a mean over this time; it falls at once.

    Attributes:
        is_busy: whether there has been no time to spare lately.
    """

    STATE = Fields("_busy", "_found_ns")

    def __init__(self, horizon_ns: int) -> None:
        self._horizon_ns = horizon_ns
        self._busy = 1.0  # share of the time with work to do, lately
        self._found_ns: float | None = None
        self.is_busy = True

    @property
    def age_ns(self) -> float:
        """The age of events that have not waited here; 0 if it is not known."""
        return self._found_ns or 0.0

    def see(self, youngest_ns: int, idle_ns: int, taken_ns: int) -> None:
        """Note an interval.

        Args:
            youngest_ns: the age of the youngest event that came.
            idle_ns: how long there was no work in the interval.
            taken_ns: the length of the interval; 0 if it is not known.
        """
        if taken_ns <= 0:
            return
        keep = 0.0 if self._found_ns is None else exp(-4 * taken_ns / self._horizon_ns)
        self._busy = keep * self._busy + (1 - keep) * (1 - min(idle_ns / taken_ns, 1.0))
        self.is_busy = self._busy >= BUSY
        now_ns = float(max(youngest_ns, 0))
        if self._found_ns is None:
            self._found_ns = None if self.is_busy else now_ns
        elif now_ns < self._found_ns:
            self._found_ns = now_ns
        elif not self.is_busy:
            keep = exp(-taken_ns / self._horizon_ns)
            self._found_ns += (1 - keep) * (now_ns - self._found_ns)

    def derive(self) -> None:
        """Find out from the share of busy time whether there was some to spare."""
        self.is_busy = self._busy >= BUSY

"""Polls of inputs, and looks of a slot at its paced sources.

```
poll     had rows ─▶ again at once
         had none ─▶ when the input wakes the slot, or after a while that grows

a's rows due  |   |   |   |   |        paced sources are looked at once in `source_gap_ns`, all of
b's rows due    |    |    |    |       a slot's at one time: it sleeps and wakes once for them
looks         |      |      |      |
```
"""

from __future__ import annotations

from slackwater.runtime.model import START_NS
from slackwater.runtime.model.state import Fields
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["Looks", "Polls"]

MOST_POLL_NS, LEAST_POLL_NS = 5_000_000, 1_000_000
POLL_SHARE = 8
"""An input that had nothing, and does not say when it has, is polled again after an eighth of the
time since it last had something, 1 to 5 ms."""


class Looks:
    """Looks of a slot at its paced sources: waking up costs more than a look.

    Args:
        gap_ns: least time between two looks.
    """

    STATE = Fields("_last_ns", "next_ns")

    def __init__(self, gap_ns: int) -> None:
        self._gap_ns = gap_ns
        self._last_ns = START_NS
        self.next_ns = START_NS
        """No look before."""

    def look(self, now_ns: int) -> int:
        """Return when to look at a source again that is looked at now."""
        if not self._last_ns <= now_ns < self.next_ns:
            self._last_ns, self.next_ns = now_ns, now_ns + self._gap_ns
        return self.next_ns


class Polls:
    """Polls of an input: when it had rows, and when it is polled again.

    Args:
        spec: settings of its source.
        start_ns: start of the job.

    Attributes:
        wakes: whether the input ends the slot's sleep when it has something.
        nothing_ns: time of the last poll if it had nothing; None if the input may have rows.
        caught_up_ns: time of the last poll that had nothing.
        turn_ns: time from which the next rows of a live input count; None if it has existing data.
    """

    def __init__(self, spec: SourceSpec, *, start_ns: int) -> None:
        self.wakes = spec.traits.wakes
        # Whether a thread reads its input, which gets rows while the job runs.
        self._is_live = self.wakes and not spec.is_history and spec.speed is None
        self.turn_ns = start_ns if self._is_live else None
        self.nothing_ns: int | None = None
        self._last_rows_ns = start_ns  # when it last had something
        self.caught_up_ns = start_ns

    @property
    def again_ns(self) -> int | None:
        """Time to poll an empty input again; None if it wakes the slot."""
        if self.wakes or self.nothing_ns is None:
            return None
        share_ns = (self.nothing_ns - self._last_rows_ns) // POLL_SHARE
        return self.nothing_ns + min(max(share_ns, LEAST_POLL_NS), MOST_POLL_NS)

    def note(self, now_ns: int, *, has_rows: bool) -> None:
        """Note a poll, and whether the input had something."""
        if self._is_live:
            self.turn_ns = now_ns
        if has_rows:
            self.nothing_ns, self._last_rows_ns = None, now_ns
        else:
            self.nothing_ns = self.caught_up_ns = now_ns

    def woken(self, now_ns: int) -> None:
        """Note that the input may have something.

        Rows of a live input count from now, or from its last slice: so they take turns with a
        backlog of another input, whose event times may be older.
        """
        if self._is_live and self.nothing_ns is not None:
            self.turn_ns = now_ns
        self.nothing_ns = None

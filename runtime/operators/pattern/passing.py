"""Stretches: for a while no row is looked at, and then all are again.

What lies in a stretch that is passed over is lost, and so are the windows that it cuts. All other
windows have all of their events, so matches that are found are true. Stretches are as long as the
bound allows, so that they cut few windows.

```
level above f·bound               no row is looked at, until one comes that has hardly waited
from the next read on             all are, until the level is above f·bound again
```
"""

from __future__ import annotations

from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding import Verdict
from slackwater.runtime.shedding.settings import Drops


class PassingOver:
    """PassingOver decides when rows are passed over, and counts them.

    Args:
        drops: the units that are dropped under load.

    Attributes:
        is_on: whether rows that come now are passed over.
        rows: rows so far that were passed over.
    """

    STATE = Fields("is_on", "_is_drained", "rows")

    def __init__(self, drops: Drops) -> None:
        self._drops = drops
        self.is_on = False
        self.rows = 0
        self._is_drained = False  # nothing waits after the rows that came last

    def decide(self, verdict: Verdict) -> None:
        """Decide whether rows are passed over from now on."""
        if self._drops == "stretches":
            self._decide(verdict)
        elif self._drops == "events":
            # If all events that cost something have to go, no match is left to look for.
            is_all = verdict.amount is not None and verdict.amount.share >= 1
            self.is_on = verdict.is_overloaded and (self.is_on or is_all)

    def _decide(self, verdict: Verdict) -> None:
        """Begin a stretch when too much waits; end it when nothing waits any more.

        It ends after the read that nothing follows: that read may have all that waited, and to look
        at it would take as long again.
        """
        if self.is_on and self._is_drained:
            # Whatever the assumed cost of events: only an event that is looked at shows it.
            self.is_on = self._is_drained = False
            return
        self.is_on = self.is_on or verdict.is_above
        self._is_drained = self.is_on and verdict.is_drained

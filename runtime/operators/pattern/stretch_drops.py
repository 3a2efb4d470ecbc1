"""StretchDrops drops stretches of the stream; between them nothing is dropped or ranked.

So windows are followed only while some are tried, to see what the stretches cost in matches.
"""

from __future__ import annotations

from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.pattern.event_drops import note_tried
from slackwater.runtime.operators.pattern.kept import Covered, Kept, Own
from slackwater.runtime.operators.pattern.open_windows import OpenWindow
from slackwater.runtime.operators.pattern.overload import Overload


class StretchDrops:
    """StretchDrops notes what tried windows have and lose.

    Args:
        overload: the load, which counts the work.
    """

    STATE = Fields()
    follows_all = False
    """Windows are followed only while some are tried."""
    learns_from_trials = False

    def __init__(self, overload: Overload) -> None:
        self._overload = overload

    def keeps_whole(self, window: int, size: int) -> bool:
        """Return False: single events are never dropped."""
        del window, size
        return False

    def drop(self, own: Own, every: list[OpenWindow], covered: Covered, kept: Kept) -> None:
        """Note the rows of tried windows."""
        tried = [
            (one, one.trial, begin, end)
            for one, begin, end in covered.of(every)
            if one.trial is not None
        ]
        note_tried(own, tried, kept)

    def worked(self, events: int) -> None:
        """Count the events that windows took."""
        self._overload.count_work(events)

    def learned(self, windows: int, matches: int) -> None:
        """Learn nothing."""

    def settle(self, kept: Kept) -> None:
        """Count nothing: rows passed over are counted as they come."""

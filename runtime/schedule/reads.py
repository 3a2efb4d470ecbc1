"""Log of a gate's reads at a replica: how long the oldest has waited."""

from __future__ import annotations

from slackwater.runtime.model.state import Fields


class ReadLog:
    """Times at which reads that are not done reached a replica."""

    STATE = Fields("_came_ns")

    def __init__(self) -> None:
        self._came_ns: dict[int, int] = {}  # {number of the read: when the first rows of it came}

    def add(self, number: int, came_ns: int) -> None:
        """Take note that rows of a read have come."""
        self._came_ns.setdefault(number, came_ns)

    def left(self, unread: int, held: int) -> int | None:
        """Note that reads before `unread` go on, and those before `held` are done.

        Returns:
            When rows came that had waited longest of those that go on; None if there are none.
        """
        since_ns = min([at for n, at in self._came_ns.items() if n < unread], default=None)
        for number in [n for n in self._came_ns if n < held]:
            del self._came_ns[number]
        return since_ns

    def oldest_ns(self) -> int | None:
        """Return when the row came that has waited longest; None if nothing is held."""
        return min(self._came_ns.values(), default=None)

"""When windows close: a policy, which has state and decides."""

from __future__ import annotations

from typing import Any, Protocol

from runtime.model import GateRead


class ClosingPolicy(Protocol):
    """Says up to which event time windows close.

    A row that comes for a window that has closed is late. A window that stays open beyond the
    frontier keeps back what the aggregate promises.
    """

    def until_ns(self, released: GateRead, now_ns: int) -> int:
        """Return the time up to which windows close with this read: never less than before.

        END_NS with the end: then nothing is left.
        """
        ...

    def sure_ns(self, frontier_ns: int) -> int:
        """Return the time up to which windows have closed for good, at most the frontier."""
        ...

    def due_ns(self, now_ns: int) -> int | None:
        """Return when it closes some by the clock; None: at no time that is known.

        Only of an aggregate whose step says `has_time`.
        """
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return all state, as plain values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        ...


class CloseByWatermark:
    """Closes a window once what is released in order has come to its end."""

    def until_ns(self, released: GateRead, now_ns: int) -> int:
        """Return the watermark."""
        del now_ns
        return released.watermark_ns

    def sure_ns(self, frontier_ns: int) -> int:
        """Return the frontier, which no watermark is behind."""
        return frontier_ns

    def due_ns(self, now_ns: int) -> None:
        """Return None: it goes by event time."""
        del now_ns

    def snapshot(self) -> dict[str, Any]:
        """Return nothing: it has no state."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with nothing."""

"""Re-placements of a running flow, for the report."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.runtime.json_form import JsonObject

__all__ = ["MovedStage", "Replaced"]


@dataclass(frozen=True)
class MovedStage(JsonObject):
    """Stage that moved to another slot."""

    stage: str
    origin: str
    target: str

    def __str__(self) -> str:
        return f"{self.stage} {self.origin} → {self.target}"


@dataclass
class Replaced(JsonObject):
    """Re-placement of a running flow, done or given up."""

    at_s: float
    """Seconds from the start of the sources until the slots concerned were told to hold still."""
    gap_s: float = 0.0
    """Seconds for which they held still; the other slots worked meanwhile."""
    moves: list[MovedStage] = field(default_factory=list)
    """Moves that were done, or were to be done."""
    state_bytes: int = 0
    """Bytes of state that moved: queues, gates, operators' states, as they were sent."""
    problem: str | None = None
    """Why no stage has moved; None if stages have."""

    @property
    def text(self) -> str:
        """Text of the re-placement, on one line."""
        moved = ", ".join(map(str, self.moves))
        if self.problem is not None:
            return f"at {self.at_s:.1f} s not re-placed ({moved}): {self.problem}"
        return (
            f"at {self.at_s:.1f} s re-placed: {moved}; {self.state_bytes / 1024:,.1f} KiB of state "
            f"went along, and the slots concerned stood still for {self.gap_s * 1e3:,.0f} ms"
        )

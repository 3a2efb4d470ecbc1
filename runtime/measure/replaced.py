"""What a re-placement of a running flow did, for the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MovedStage", "Replaced"]


@dataclass(frozen=True)
class MovedStage:
    """A stage that goes on in another slot."""

    stage: str
    origin: str
    target: str

    def __str__(self) -> str:
        return f"{self.stage} {self.origin} → {self.target}"


@dataclass
class Replaced:
    """One re-placement of a running flow, done or given up."""

    at_s: float
    """When the slots concerned were told to hold still, in seconds since the sources began."""
    gap_s: float = 0.0
    """From then until they went on; the other slots worked all the while."""
    moves: list[MovedStage] = field(default_factory=list)
    """What has moved, or was to."""
    state_bytes: int = 0
    """What went along: queues, gates, operators' states, as they were carried."""
    problem: str | None = None
    """Why nothing has moved; None: it has."""

    @property
    def text(self) -> str:
        """Say it in a line."""
        moved = ", ".join(map(str, self.moves))
        if self.problem is not None:
            return f"at {self.at_s:.1f} s not re-placed ({moved}): {self.problem}"
        return (
            f"at {self.at_s:.1f} s re-placed: {moved}; {self.state_bytes / 1024:,.1f} KiB of state "
            f"went along, and the slots concerned stood still for {self.gap_s * 1e3:,.0f} ms"
        )

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Replaced:
        """Return what was written as plain values.

        Raises:
            KeyError, TypeError: it was not.
        """
        return cls(**{**plain, "moves": [MovedStage(**one) for one in plain["moves"]]})

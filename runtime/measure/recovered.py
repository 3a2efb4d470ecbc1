"""Recoveries of a job from failures, for the report."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.runtime.json_form import JsonObject

__all__ = ["Recovery"]


@dataclass
class Recovery(JsonObject):
    """Recovery of a job: all slots went back after a failure."""

    at_s: float
    """Seconds from the start of the job until the failure was noticed."""
    cause: str
    """Kind of error and its message."""
    checkpoint: int | None = None
    """Number of the checkpoint that the slots went back to; None means the start."""
    gap_s: float | None = None
    """Seconds from the failure until slots worked again; None if they do not yet."""
    lost_nodes: list[str] = field(default_factory=list)
    """Names of nodes that were lost by then, also after the cause: their slots go elsewhere."""
    waits: str | None = None
    """Room that slots of lost nodes wait for; None if they do not wait."""

    @property
    def text(self) -> str:
        """Text of the recovery, on one line."""
        place = "the start" if self.checkpoint is None else f"checkpoint {self.checkpoint:,}"
        gap = "" if self.gap_s is None else f", and worked again after {self.gap_s:.2f} s"
        cause = self.cause.partition("\n")[0]
        lost = f", without {' and '.join(self.lost_nodes)}" if self.lost_nodes else ""
        waits = "" if self.waits is None else f"; {self.waits}"
        return f"at {self.at_s:.1f} s all slots went back to {place}{lost}{gap}: {cause}{waits}"

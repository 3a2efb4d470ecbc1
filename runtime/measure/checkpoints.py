"""Checkpoints of a job, for the report."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.runtime.json_form import JsonObject

__all__ = ["CheckpointReport"]


@dataclass
class CheckpointReport(JsonObject):
    """Newest complete checkpoint of a job, and how they are taken."""

    every_s: float
    """Seconds between two."""
    folder: str
    """Folder of the checkpoints."""
    number: int | None = None
    """Number of the newest complete one; None before the first."""
    age_s: float | None = None
    """Seconds since it was begun."""
    took_s: float | None = None
    """Seconds from its beginning until it was complete."""
    cut_s: float | None = None
    """Longest time for which the loop of a slot stood still for it, in seconds."""
    folder_bytes: int = 0
    """Size of all checkpoints in the folder."""
    problem: str | None = None
    """Reason why a newer one is not complete; None if it is the newest that was begun."""

    @property
    def text(self) -> str:
        """Text of the newest checkpoint, on one line."""
        if self.number is None or self.age_s is None or self.took_s is None:
            newest = "no checkpoint is complete yet"
        else:
            newest = (
                f"checkpoint {self.number:,}, begun {self.age_s:.1f} s ago, was complete after "
                f"{self.took_s * 1e3:.0f} ms; {self.folder_bytes / 2**20:.1f} MiB in {self.folder}"
            )
        return newest if self.problem is None else f"{newest}; a newer one failed: {self.problem}"

"""Checkpoints of a job, for the report."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.runtime.json_form import JsonObject

__all__ = ["CheckpointReport"]


@dataclass
class CheckpointReport(JsonObject):
    """Newest complete checkpoint of a job, and how they are taken."""

    every_s: float
    """Seconds from a checkpoint to the next one, as the user wants them."""
    folder: str
    """Folder of the checkpoints."""
    interval_s: float
    """The same as they are: more where a slot would spend over 3 % of its time."""
    number: int | None = None
    """Number of the newest complete checkpoint; None before the first."""
    age_s: float | None = None
    """Seconds since it was begun."""
    took_s: float | None = None
    """Seconds from its beginning until it was complete."""
    cut_s: float | None = None
    """Longest time for which the loop of a slot stood still for it, in seconds."""
    folder_bytes: int = 0
    """Size of all checkpoints in the folder."""
    spool_bytes: int = 0
    """Size of the rows there of sources that are read once."""
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
        if self.spool_bytes:
            newest += f"; spooled rows: {self.spool_bytes / 2**20:.1f} MiB"
        if self.interval_s > self.every_s:
            newest += (
                f"; every {self.interval_s:.1f} s in place of {self.every_s:g} s, so that they "
                "cost 3 % at most"
            )
        return newest if self.problem is None else f"{newest}; a newer one failed: {self.problem}"

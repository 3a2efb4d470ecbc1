"""Time limits of a job's phases, and why they are so long."""

from __future__ import annotations

from dataclasses import dataclass, fields

from slackwater.runtime.errors import SettingError

__all__ = ["TimeLimits"]


@dataclass(frozen=True, kw_only=True)
class TimeLimits:
    """Time limits of the phases of a job's life, in seconds, each above 0."""

    settle_s: float = 2.0
    """Wait after the first failure for its cause: a slot often notices that its peer is gone
    before the cluster says which worker died."""

    check_s: float = 3.0
    """Wait for an answer whether the cluster is there: a call to its head and to a raylet, whose
    kernels answer within a millisecond. They get one second of this, and our own code two."""

    dead_s: float = 2.0
    """Wait for an answer which nodes are gone. It only adds a reason, so it is worth no more."""

    stop_s: float = 10.0
    """Wait for slots to end once they are told to: their sinks write and sync their rows, and a
    slice may take a second. A slot that is silent for longer hangs, and is killed. A slot whose
    process is known to stand still is not waited for."""

    cut_off_s: float = 3.0
    """Wait for the last reports of slots whose cluster is gone: they may never come, and a user
    at a terminal waits for us."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            if not getattr(self, limit.name) > 0:
                raise SettingError(f"{limit.name}={getattr(self, limit.name)} must be above 0")

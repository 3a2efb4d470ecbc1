"""How long a job waits for what, and why so long."""

from __future__ import annotations

from dataclasses import dataclass, fields

from slackwater.runtime.errors import SettingError

__all__ = ["TimeLimits"]


@dataclass(frozen=True, kw_only=True)
class TimeLimits:
    """What a job's life waits for, in seconds, each above 0."""

    settle_s: float = 2.0
    """After the first failure, for its cause: a slot often notices that its peer is gone before
    anybody says which worker died."""

    check_s: float = 3.0
    """For a word whether the cluster is there: a call to its head and to a raylet, of which each
    kernel answers within a millisecond. A second is what is given to them, and two to us."""

    dead_s: float = 2.0
    """For a word which nodes are gone. It only adds a reason, so it is not worth more."""

    stop_s: float = 10.0
    """For slots to end once they are told to: their sinks write and sync what they have, a slice
    may take a second. What is silent then hangs, and is killed."""

    cut_off_s: float = 3.0
    """For all that is left to be heard of slots whose cluster is gone: nothing can be waited for
    that may never come, and a user at a terminal waits for us."""

    def __post_init__(self) -> None:
        for one in fields(self):
            if not getattr(self, one.name) > 0:
                raise SettingError(f"{one.name}={getattr(self, one.name)} must be above 0")

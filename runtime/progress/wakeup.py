"""A wake-up says when a stage next has work, and how urgent that is.

```
stage ──wakeup──▶ slot          told, once, when it changes: a delivery, a slice, a command
a   now, of stimulus 12         the slot runs the earliest stimulus of those that may run
b   at 40, of stimulus 31
c   none                        and sleeps until the earliest time where none may
```
"""

from __future__ import annotations

from typing import NamedTuple

from slackwater.runtime.model import START_NS

__all__ = ["Wakeup"]


class Wakeup(NamedTuple):
    """The next work of a stage.

    Attributes:
        at_ns: not before this time; START_NS: now; END_NS: once something comes.
        rank_ns: the stimulus time by which the work is ordered; None if that is when it is done.
        promise_ns: promise of a source: of equal ranks the least goes first. START_NS for other
            stages.
        rows_since_ns: time since which rows of a source's input wait, END_NS if none does; None
            if it is another stage.
        is_guess: whether the work is a poll, which may find nothing.
    """

    at_ns: int
    rank_ns: int | None
    promise_ns: int = START_NS
    rows_since_ns: int | None = None
    is_guess: bool = False

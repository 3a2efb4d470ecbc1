"""Commands of several deciders; where they differ, the first in the list prevails.

```
"sltuner"  SetRelease(gate, 2 s)  ──▶ told
"other"    SetRelease(gate, 5 s)  ──▶ refused: sltuner stands before it
           Shed(buses, 1 s)       ──▶ told
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from slackwater.runtime.control.commands import Command, Warn
from slackwater.runtime.model.subject import Subject


class Wanted(NamedTuple):
    """Commands that one decider wants at the end of an interval.

    Attributes:
        by: name of the decider, given to commands without one.
        commands: the last of each kind and subject counts.
    """

    by: str
    commands: Sequence[Command]


def settled(wanted: Sequence[Wanted]) -> tuple[list[Command], list[str]]:
    """Return the commands to carry out, and why the others are refused.

    If two deciders want different commands of one kind for one subject, the first in the list
    prevails, in this interval. Commands of a single decider stay as they are.

    Args:
        wanted: commands of all deciders, in order of precedence.
    """
    if len(wanted) == 1:
        return list(wanted[0].commands), []
    done: list[Command] = []
    refused: list[str] = []
    holders: dict[tuple[str, Subject], tuple[int, Command]] = {}  # {kind, subject: decider, last}
    for number, (by, commands) in enumerate(wanted):
        for command in commands:
            kind, subject = type(command).__name__, command.subject
            holder, last = holders.get((kind, subject), (number, command))
            if isinstance(command, Warn) or holder == number:
                holders[kind, subject] = number, command
                done.append(command if command.by else replace(command, by=by))
            elif replace(command, by="") != replace(last, by=""):
                refused.append(
                    f"{by}: {kind} of step {subject.name!r} is left out, for {wanted[holder].by}, "
                    "which stands before it, wants another in the same interval; let one of them "
                    "decide on that step"
                )
    return done, refused

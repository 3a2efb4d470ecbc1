"""Several who decide, each under its name, and whose word prevails where they differ.

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


class Wanted(NamedTuple):
    """What one decider wants now that an interval is over.

    Attributes:
        by: its name, which its commands get that have none.
        commands: of one kind and stage the last counts.
    """

    by: str
    commands: Sequence[Command]


def settled(wanted: Sequence[Wanted]) -> tuple[list[Command], list[str]]:
    """Return what is to be done, and why the rest is not.

    Of two who want different things of one stage, of one kind of command, the first in the list
    has it; another interval is another matter. What one alone wants is left as it is.

    Args:
        wanted: of all deciders, the one whose word prevails first.
    """
    if len(wanted) == 1:
        return list(wanted[0].commands), []
    done: list[Command] = []
    refused: list[str] = []
    taken: dict[tuple[str, str], tuple[int, Command]] = {}  # {kind, stage: by which, its last}
    for number, (by, commands) in enumerate(wanted):
        for command in commands:
            kind, stage = type(command).__name__, command.stage
            holder, last = taken.get((kind, stage), (number, command))
            if isinstance(command, Warn) or holder == number:
                taken[kind, stage] = number, command
                done.append(command if command.by else replace(command, by=by))
            elif replace(command, by="") != replace(last, by=""):
                refused.append(
                    f"{by}: {kind} of stage {stage!r} is left out, for {wanted[holder].by}, which "
                    "stands before it, wants another in the same interval; let one of them decide "
                    "on that stage"
                )
    return done, refused

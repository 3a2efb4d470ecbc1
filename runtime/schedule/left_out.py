"""Rows that a source's filter omits are worked off without a message.

```
due          a1  b1  a2          b2          at the speed of the clock, a few rows at each look
filter       ✗   ✗   ✗           ✓
             counted in one go   run: a slice, with a message
```

Most events of a filtered stream end here. To make a slice and a message of each few of them, to ask
each output what to do with it and to throw it away was half of what they cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slackwater.runtime.schedule.actions import Slice
from slackwater.runtime.schedule.slice_size import SliceSize
from slackwater.runtime.schedule.stage import StageMachine

__all__ = ["leave_out", "rows_left_out"]


def rows_left_out(
    due: Sequence[StageMachine], now_ns: int, sizes: Mapping[str, SliceSize]
) -> Slice | None:
    """Work off due rows of paced sources that no consumer is to see.

    Counts, promises and the sources' state are then what they would be after a slice of each.

    Args:
        due: paced sources that have rows newly due.
        now_ns: time by the slot's clock.
        sizes: {stage: length of its slices}.

    Returns:
        None if none is due, a row of each that has some goes on, or a promise is due that a
        consumer needs.
    """
    each: list[Slice] = []
    for machine in due:
        name = machine.stage.name
        if rows := leave_out(machine, now_ns, sizes[name].rows):
            each.append(Slice(name, rows, [], now_ns, released=rows))
    if len(each) < 2:
        return each[0] if each else None
    rows = sum([part.rows for part in each])
    return Slice(each[0].stage, rows, [], now_ns, released=rows, each=tuple(each))


def leave_out(machine: StageMachine, now_ns: int, max_rows: int) -> int:
    """Work off due rows of one paced source; return how many."""
    source, outputs = machine.source, machine.outputs
    assert source is not None, "paced stages are sources"
    rows = source.leave_out(now_ns, max_rows, below_ns=outputs.silent_below_ns(now_ns))
    if rows:
        outputs.reach(source.progress)
        machine.left_out(rows, now_ns)
    return rows

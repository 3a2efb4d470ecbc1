"""A source's rows that the filter behind it leaves out, worked off without a message.

```
due          r1  r2          r3          at the speed of the clock, a row or two at each look
filter       ✗   ✗           ✓
             counted, gone   run: a slice, with a message
```

Most events of a filtered stream end here. To make a message of each few of them, to ask each output
what to do with it and to throw it away was half of what they cost.
"""

from __future__ import annotations

from runtime.schedule.stage import StageMachine

__all__ = ["leave_out"]


def leave_out(machine: StageMachine, now_ns: int, *, max_rows: int) -> int:
    """Work off the rows of a stage that are due, if nobody is to hear of them; return how many.

    0: none is due, one of them goes on, or a promise is due that somebody has use for: let it run.
    Counts, promises and the source's state are then what they would be behind a slice.

    Args:
        machine: of the stage.
        now_ns: by the clock of its slot.
        max_rows: at most so many.
    """
    source_at = machine.source_at
    if source_at is None:
        return 0
    source, outputs = source_at.machine, machine.outputs
    rows = source.leave_out(now_ns, max_rows, below_ns=outputs.silent_below_ns(now_ns))
    if rows:
        outputs.made(source.promise_ns, source.promise_stimulus_ns)
        source_at.has_looked(now_ns)
        machine.quiet_until_ns = source_at.quiet_until_ns
        machine.rows_worked = machine.rows_released = rows
        machine.moved_ns = now_ns
        machine.report.batches += 1
        machine.chain.tested(0, rows, machine.report)
    return rows

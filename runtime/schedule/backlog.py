"""Backlog: longer slices of rows that have waited; a gate waits for both sources.

```
waited    0 ·········· 10 ms ·········· 40 ms ·········· 100 ms ····
slice     2 ms ········ 2 ms ··········· 8 ms ··········· 20 ms ····   a fifth of the wait
```

A row that has waited for 40 ms loses nothing by a slice of 8 ms, and a backlog ends sooner. A
longer slice takes no row that came after an older one of another stage.

```
bus     ═══════════╪════════     two files; ╪ ends a slice of a source
scats   ═════════╪═══════╪══     each lets the join have what the other has already
join      3,900 rows, 40, 4,020, 90, …     a slice of 40 rows costs half of what one of 4,000 does
```

No row of existing data is due by a clock, and each waits for all that were there before it. So
before a slice of a gate the source goes first whose promise holds it back, if nothing of it is
queued and it can go at once: the one departure from the order by stimulus. An order of the user's
has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slackwater.runtime.config import Limits
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.schedule.idle_channels import may_be_older
from slackwater.runtime.schedule.ready import ReadyStages
from slackwater.runtime.schedule.slice_size import (
    FIRST_ROWS,
    MOST_GROWTH,
    SOURCE_GROWTH,
    SliceSize,
)
from slackwater.runtime.schedule.stage import StageMachine

__all__ = ["AwaitedSources", "SliceLengths"]

SHARE_OF_WAIT, SHARE_OF_DEADLINE = 5, 10
"""A slice may take a fifth of the time that its rows have waited, and a tenth of the deadline."""


class SliceLengths:
    """Lengths of the slices of a slot's stages.

    Args:
        stages: {name: machine}, of the slot.
        limits: limits of the job.
        start_ns: start of the job.
        deadline_ns: deadline of the flow; None if none exists.

    Attributes:
        sizes: {stage: length of its slices}.
    """

    def __init__(
        self,
        stages: Mapping[str, StageMachine],
        limits: Limits,
        *,
        start_ns: int,
        deadline_ns: int | None = None,
    ) -> None:
        self._start_ns = start_ns
        self._least_wait_ns = SHARE_OF_WAIT * limits.slice_ns
        longest_ns = max(limits.longest_slice_ns, limits.slice_ns)
        if deadline_ns is not None:
            longest_ns = max(min(longest_ns, deadline_ns // SHARE_OF_DEADLINE), 1)
        self.sizes = {
            name: SliceSize(
                limits,
                longest_ns=longest_ns,
                most_growth=MOST_GROWTH if machine.source is None else SOURCE_GROWTH,
                first_rows=_first_rows(machine, limits, has_deadline=deadline_ns is not None),
            )
            for name, machine in stages.items()
        }
        # Of sources in other slots the plan knows only that their data exists.
        self._sees_sources = all(
            machine.stage.is_backlog
            or all(channel.source in stages for channel in machine.stage.inputs)
            for machine in stages.values()
        )

    def next_rows(self, machine: StageMachine, ready: ReadyStages, now_ns: int) -> int:
        """Return the most rows of a stage's next slice.

        Args:
            machine: machine of the stage.
            ready: the slot's stages that have work.
            now_ns: time by the slot's clock.
        """
        size = self.sizes[machine.stage.name]
        if not size.is_full or machine.stage.kind == "sink":  # its rows leave as a slice ends
            return size.rows
        waited_ns = max(self._least_wait_of_rows_ns(ready, now_ns), machine.waited_ns(now_ns))
        if waited_ns <= self._least_wait_ns:
            return size.rows
        rows = size.within(waited_ns // SHARE_OF_WAIT)
        if rows == size.rows or (other_ns := _earliest_other(machine, ready)) is None:
            return rows
        older = 0 if machine.node.has_more else machine.queues.rows_until(other_ns, rows)
        return max(size.rows, older)

    def _least_wait_of_rows_ns(self, ready: ReadyStages, now_ns: int) -> int:
        """Return the least wait of rows that the slot can be given."""
        if not self._sees_sources:
            return 0
        since_ns = ready.latest_wait_ns()
        return max(now_ns - (self._start_ns if since_ns is None else since_ns), 0)


def _first_rows(machine: StageMachine, limits: Limits, *, has_deadline: bool) -> int:
    """Return the rows of a stage's first slice.

    No row of existing data is waited for. Each short slice of a source would be a message to each
    replica, and each of these makes a gate release few rows.
    """
    stage = machine.stage
    users = any(step.traits.runs_users_code for step in (stage.step, *stage.chain))
    if has_deadline or users or not stage.is_backlog or stage.kind == "sink":
        return FIRST_ROWS
    if machine.source is not None:
        return limits.max_slice_rows
    return max(FIRST_ROWS, limits.min_slice_rows)


def _earliest_other(machine: StageMachine, ready: ReadyStages) -> int | None:
    """Return the earliest stimulus of other stages' work; None if they have none.

    Rows that an input has, and a slot has not taken, have none yet.
    """
    return ready.earliest_ns(
        lambda other: other is not machine and (other.is_paced or other.source is None)
    )


class AwaitedSources:
    """The gates of one slot whose inputs all come from such sources in it.

    Ready-only ones where no row comes late, no channel is idle and no samples are taken: what they
    release does not depend on when.

    Args:
        stages: {name: machine}, of the slot.

    Attributes:
        gates: the stages.
    """

    def __init__(self, stages: Mapping[str, StageMachine]) -> None:
        self.gates = {name for name, machine in stages.items() if _is_fed_by_them(machine, stages)}

    def before(
        self,
        stage: StageMachine,
        now_ns: int,
        *,
        stages: Mapping[str, StageMachine],
        turns: Mapping[str, int],
        has_credit: Callable[[StageMachine], bool],
    ) -> StageMachine:
        """Return the source that goes before a stage of `gates`, or the stage itself.

        A source goes first once between two slices of the stage.

        Args:
            stage: stage whose turn it is.
            now_ns: time by the slot's clock.
            stages: {name: machine}, of the slot as they are now: they may have moved.
            turns: {stage: number of its last slice}.
            has_credit: whether a stage may send what it makes.
        """
        name, writer = stage.stage.name, _awaited(stage)
        if writer is None:
            return stage
        source = stages[stage.stage.inputs[writer].source]
        if turns.get(source.stage.name, 0) > turns.get(name, 0):
            return stage
        wakeup = source.next
        is_ready = wakeup is not None and wakeup.at_ns <= now_ns
        return source if is_ready and has_credit(source) else stage


def _reads_on(machine: StageMachine) -> bool:
    step = machine.stage.step
    return isinstance(step, SourceStep) and step.source.is_backlog


def _is_fed_by_them(machine: StageMachine, stages: Mapping[str, StageMachine]) -> bool:
    inputs = machine.stage.inputs
    if machine.gate is None or len(inputs) < 2 or machine.is_sampled:
        return False
    if not machine.stage.is_ready_only or any(map(may_be_older, inputs)):
        return False
    return all(channel.source in stages and _reads_on(stages[channel.source]) for channel in inputs)


def _awaited(machine: StageMachine) -> int | None:
    """Return the writer that a gate waits for; None if rows of it are queued."""
    gate, queues = machine.gate, machine.queues
    if gate is None or machine.node.has_more:
        return None
    queued = [queues.promised_ns(channel.name) for channel in machine.stage.inputs]
    promised = [gate.promised_ns(n) if ns is None else ns for n, ns in enumerate(queued)]
    writer = promised.index(min(promised))
    return writer if queued[writer] is None else None

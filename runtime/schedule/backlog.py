"""Backlog: slices of a slot whose sources read as fast as they can.

```
bus     ═══════════╪════════     two files; ╪ ends a slice of a source
scats   ═════════╪═══════╪══     each lets the join have what the other has already
join      3,900 rows, 40, 4,020, 90, …     a slice of 40 rows costs half of what one of 4,000 does
```

None of these rows is due by a clock, and each waits for all that were there before it. So slices
are longer, and before a slice of a gate the source goes first whose promise holds it back, if
nothing of it is queued and it can go at once: the one departure from the order by stimulus. An
order of the user's has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slackwater.runtime.config import Limits
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.schedule.idle_channels import may_be_behind
from slackwater.runtime.schedule.slice_size import SliceSize
from slackwater.runtime.schedule.stage import StageMachine

__all__ = ["AwaitedSources", "slice_sizes"]


def slice_sizes(stages: Mapping[str, StageMachine], limits: Limits) -> dict[str, SliceSize]:
    """Return {stage: how long its slices are}, of the stages of a slot."""
    slice_ns = limits.slice_ns
    if all(_is_of_backlog(machine, stages) for machine in stages.values()):
        slice_ns = max(slice_ns, limits.backlog_slice_ns)
    return {name: SliceSize(limits, slice_ns=slice_ns) for name in stages}


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
        self.gates = {name for name, one in stages.items() if _is_fed_by_them(one, stages)}

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
            stage: whose turn it is.
            now_ns: by the slot's clock.
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


def _is_of_backlog(machine: StageMachine, stages: Mapping[str, StageMachine]) -> bool:
    """Whether a stage reads a backlog, or is fed within its slot."""
    if machine.is_sampled or (machine.source is not None and not _reads_on(machine)):
        return False
    return all(channel.source in stages for channel in machine.stage.inputs)


def _is_fed_by_them(machine: StageMachine, stages: Mapping[str, StageMachine]) -> bool:
    inputs = machine.stage.inputs
    if machine.gate is None or len(inputs) < 2 or machine.is_sampled:
        return False
    if not machine.stage.is_ready_only or any(map(may_be_behind, inputs)):
        return False
    return all(one.source in stages and _reads_on(stages[one.source]) for one in inputs)


def _awaited(machine: StageMachine) -> int | None:
    """Return the writer that a gate waits for; None if rows of it are queued."""
    gate, queues = machine.gate, machine.queues
    if gate is None or machine.intake.more:
        return None
    queued = [queues.promised_ns(channel.name) for channel in machine.stage.inputs]
    told = [gate.promised_ns(n) if ns is None else ns for n, ns in enumerate(queued)]
    writer = told.index(min(told))
    return writer if queued[writer] is None else None

"""What slots hand over to each other, by way of their job, as stages move between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from slackwater.actors.sinks import SlotSinks
from slackwater.actors.slot.read_ahead import ReadAheadInput, read_ahead
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.plan.slot_plan import SlotPlan
from slackwater.runtime.plan.steps import SinkStep
from slackwater.runtime.schedule import Slot, SlotResults, make_slot

__all__ = ["Given", "Taken", "given", "taken"]


@dataclass(frozen=True)
class Given:
    """What a slot gives, that holds still.

    Attributes:
        state: `Slot.snapshot` of the stages that leave it.
        results: the state of its `SlotResults`.
        rows: {collect sink that leaves: what it has, as an Arrow IPC stream}.
        finished: its stages that have seen their end.
    """

    state: dict[str, Any]
    results: dict[str, Any]
    rows: dict[str, bytes]
    finished: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What a slot goes on with, beside the plan that it was told before.

    Attributes:
        start_ns: of the job's sources, by the reference's clock.
        endpoints: {channel: where its other end listens}, of those that are new.
        state: for `Slot.restore`; None: it has no stage.
        results: the state for its `SlotResults`.
        rows: {collect sink that comes: what it had}.
    """

    start_ns: int
    endpoints: Mapping[str, str] = field(default_factory=dict)
    state: Mapping[str, Any] | None = None
    results: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, bytes] = field(default_factory=dict)


def given(slot: Slot, results: SlotResults, sinks: SlotSinks, leaving: Collection[str]) -> Given:
    """Return what a slot has of the stages that leave it, and let go of what they hold open."""
    finished = tuple(name for name, machine in slot.stages.items() if machine.is_finished)
    found = Given(slot.snapshot(leaving), save(results), {}, finished)
    for name in leaving:
        machine = slot.stages[name]
        machine.close()
        if isinstance(machine.stage.step, SinkStep):
            found.rows[name] = sinks.hand_over(name)
            results.settled(name)  # should the job end now, it is not ours to end any more
    return found


def taken(
    plan: SlotPlan,
    order: Taken,
    old: Slot | None,
    sinks: SlotSinks,
    *,
    wake: Callable[[], None],
    folder: str,
) -> tuple[Slot, SlotResults, list[ReadAheadInput]]:
    """Return the machines that a slot goes on with.

    Args:
        plan: its part of the new plan; perhaps without a stage.
        order: what it is given.
        old: its slot until now, whose stages that stay go on as they are; None: it is new.
        sinks: its own; those that come are opened.
        wake: ends the loop's wait, for sources that are read in threads.
        folder: what sinks' relative paths are meant from.

    Returns:
        The slot, what decides on its sinks, and the sources that came and are read in threads.
    """
    known = {} if old is None else old.stages
    arriving = [stage for stage in plan.stages if stage.name not in known]
    sinks.open(arriving, folder=folder, runs={})
    for sink, rows in order.rows.items():
        sinks.collected(sink).take_over(rows)
    opened = {stage.name: read_ahead(stage, wake) for stage in arriving}
    stages = tuple(
        opened[one.name][0] if one.name in opened else known[one.name].stage for one in plan.stages
    )
    slot = make_slot(replace(plan, stages=stages), start_ns=order.start_ns)
    if order.state is not None:
        slot.restore(dict(order.state), old)
    results = SlotResults(
        [stage.name for stage in stages if stage.kind == "sink"], deadline_ns=plan.deadline_ns
    )
    restore(results, order.results)
    return slot, results, [own for _, own in opened.values() if own is not None]

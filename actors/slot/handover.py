"""Define what slots hand over to each other, through their job, as stages move."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from slackwater.actors.sinks.slot_sinks import SlotSinks
from slackwater.actors.slot.read_ahead import ReadAheadInput, read_ahead
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.plan.slot_plan import SlotPlan
from slackwater.runtime.plan.steps import SinkStep
from slackwater.runtime.schedule import Slot, SlotResults, make_slot

__all__ = ["HandOver", "TakeOver", "hand_over", "take_over"]


@dataclass(frozen=True)
class HandOver:
    """State that a slot gives while it holds still.

    Attributes:
        state: `Slot.snapshot` of the leaving stages.
        results: the state of its `SlotResults`.
        positions: {leaving sink: its position}.
        finished: stages of the slot that have seen their end.
    """

    state: dict[str, Any]
    results: dict[str, Any]
    positions: dict[str, bytes]
    finished: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TakeOver:
    """State that a slot takes over, besides its new plan, which it already has.

    Attributes:
        start_ns: start of the job's sources, by the reference's clock.
        endpoints: {channel: its receiver's endpoint}, of new channels.
        state: state for `Slot.restore`; None if the slot has no stage.
        results: the state for its `SlotResults`.
        positions: {arriving sink: its position}.
    """

    start_ns: int
    endpoints: Mapping[str, str] = field(default_factory=dict)
    state: Mapping[str, Any] | None = None
    results: Mapping[str, Any] = field(default_factory=dict)
    positions: Mapping[str, bytes] = field(default_factory=dict)


def hand_over(
    slot: Slot, results: SlotResults, sinks: SlotSinks, leaving: Collection[str]
) -> HandOver:
    """Return the state of the stages that leave a slot, and release their resources."""
    finished = tuple(name for name, machine in slot.stages.items() if machine.is_finished)
    leaving_state = HandOver(slot.snapshot(leaving), save(results), {}, finished)
    for name in leaving:
        machine = slot.stages[name]
        machine.close()
        if isinstance(machine.stage.step, SinkStep):
            leaving_state.positions[name] = sinks.hand_over(name)
            results.settled(name)  # from now on another slot ends it
    return leaving_state


def take_over(
    plan: SlotPlan,
    order: TakeOver,
    old: Slot | None,
    sinks: SlotSinks,
    *,
    wake: Callable[[], None],
    folder: str,
) -> tuple[Slot, SlotResults, list[ReadAheadInput]]:
    """Return the machines with which a slot goes on.

    Args:
        plan: the slot's part of the new plan; perhaps without a stage.
        order: state that the slot takes over.
        old: the slot until now, whose remaining stages go on; None if the slot is new.
        sinks: sinks of the slot; arriving sinks are opened.
        wake: ends the loop's wait, for sources that are read in threads.
        folder: start of sinks' relative paths.

    Returns:
        The slot, its sinks' machine, and the arriving sources that are read in threads.
    """
    known = {} if old is None else old.stages
    arriving = [stage for stage in plan.stages if stage.name not in known]
    sinks.open(arriving, folder=folder, runs={}, at=order.positions)
    opened = {stage.name: read_ahead(stage, wake, plan) for stage in arriving}
    stages = tuple(
        opened[s.name][0] if s.name in opened else known[s.name].stage for s in plan.stages
    )
    slot = make_slot(replace(plan, stages=stages), start_ns=order.start_ns)
    if order.state is not None:
        slot.restore(dict(order.state), old)
    results = SlotResults.of(plan)
    restore(results, order.results)
    return slot, results, [own for _, own in opened.values() if own is not None]

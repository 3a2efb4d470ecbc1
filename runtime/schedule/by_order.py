"""Choice of the next stage by a user's order, out of views."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.runtime.model import START_NS
from slackwater.runtime.schedule.order import Order, StageView, choice
from slackwater.runtime.schedule.stage import StageMachine

__all__ = ["chosen_by"]


def chosen_by(
    order: Order,
    able: Mapping[StageMachine, int],
    turns: Mapping[str, int],
    now_ns: int,
    *,
    slot: str,
) -> StageMachine | None:
    """Return the stage that an order chooses; None if no stage has work.

    Args:
        order: order of the user.
        able: {stage that has work, and credit for it: the earliest stimulus of that}.
        turns: {stage: number of its last slice}.
        now_ns: time by the slot's clock.
        slot: its name, for errors.

    Raises:
        OperatorError: it has raised.
        SettingError: it has chosen what it was not shown.
    """
    views = {
        StageView(
            machine.stage.subject,
            machine.stage.kind,
            urgency,
            START_NS if machine.next is None else machine.next.promise_ns,
            machine.rows_waiting,
            machine.came_ns(urgency),
            turns.get(machine.stage.name, 0),
        ): machine
        for machine, urgency in able.items()
    }
    if not views:
        return None
    shown = list(views)
    first = shown[0] if len(shown) == 1 else choice(order.first, shown, now_ns, at=f"slot {slot!r}")
    return views[first]

"""How long a slot may sleep whose stages have nothing to do now."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from slackwater.runtime.model import END_NS
from slackwater.runtime.schedule.actions import Rest
from slackwater.runtime.schedule.source_at import Looks
from slackwater.runtime.schedule.stage import StageMachine

__all__ = ["POLL_NS", "rest_of_stages"]

POLL_NS = 5_000_000
"""A source that has nothing right now, and cannot say when, is asked again after this long."""


def rest_of_stages(
    stages: Iterable[StageMachine],
    now_ns: int,
    *,
    looks: Looks,
    has_credit: Callable[[StageMachine], bool],
) -> Rest:
    """Return until when there is nothing to do, there having been nothing just now.

    Args:
        stages: of the slot.
        now_ns: by its clock.
        looks: when it looks at its paced sources.
        has_credit: whether a stage may send what it makes.
    """
    first_ns, paced_ns, is_polled = END_NS, END_NS, False
    for machine in stages:
        if (quiet_ns := machine.quiet_until_ns) > now_ns:
            if machine.is_paced:
                paced_ns = quiet_ns if quiet_ns < paced_ns else paced_ns
            elif quiet_ns < first_ns:
                first_ns = quiet_ns
            continue
        due_ns = machine.due_ns(now_ns)
        if due_ns is not None and now_ns < due_ns < first_ns:
            first_ns = due_ns
        is_polled = is_polled or machine.is_polling(now_ns)
        if machine.urgency_ns(now_ns) is not None and has_credit(machine):
            # An input that had nothing when it was asked in `step` had something just now.
            return Rest(now_ns, is_guess=False)
    if paced_ns < first_ns:
        first_ns = min(first_ns, max(paced_ns, looks.next_ns))
    if is_polled and now_ns + POLL_NS < first_ns:
        return Rest(now_ns + POLL_NS, is_guess=first_ns == END_NS)
    return Rest(None if first_ns == END_NS else first_ns, is_guess=False)

"""Error text of a stalled run, in which no stage can go on."""

from __future__ import annotations

from collections.abc import Iterable

from slackwater.runtime.schedule import Slot

__all__ = ["why_stalled"]


def why_stalled(flow: str, slots: Iterable[Slot], now_ns: int) -> str:
    """Return why a flow's run in these slots cannot go on, with a hint."""
    waits = [
        f"{stage.name} waits for {', '.join(stage.waiting_for)}"
        for slot in slots
        for stage in slot.reports(now_ns)[0]
        if stage.waiting_for
    ]
    return (
        f"flow {flow!r} cannot go on: no source has anything more and none has "
        f"ended ({'; '.join(waits) or 'no gate waits'}); end the sources, or give `until_ns`"
    )

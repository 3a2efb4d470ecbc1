"""Lazy promises between the stages of a slot: sent only when a consumer needs them.

```
b's rows     ──▶ gate of a join    holds a row of 10:00:00.250, so asks a for as much
a promises   10:00:00.100 … .240   kept: it would let nothing go
             10:00:00.250          sent: the row leaves
```

A source that is filtered promises four thousand times a second and has a row now and then. To tell
a gate of each promise took longer than all other work of its slot. A step that needs rows for a
result makes none of a promise: what it forgets by that it may forget some time later. Where a stage
is in another slot it is told of everything, and so is a gate that may count a row as late, or that
is sampled: what they do is to depend on no more than the rows and the promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from slackwater.runtime.model import Message
from slackwater.runtime.plan.plan import Channel
from slackwater.runtime.schedule.idle_channels import may_be_older
from slackwater.runtime.schedule.stage import StageMachine

__all__ = ["RequestedPromises", "Unsaid"]


class Unsaid(NamedTuple):
    """A promise that is to be sent now."""

    source: StageMachine
    channel: Channel
    message: Message


class RequestedPromises:
    """Channels of a slot on which promises alone are sent only when asked for.

    Args:
        stages: {name: machine}, of the slot.
    """

    def __init__(self, stages: Mapping[str, StageMachine]) -> None:
        asking = _asking(stages)
        self._sources = {
            name: [
                (writer, channel, stages[channel.source])
                for writer, channel in enumerate(machine.stage.inputs)
                if channel.source in stages
            ]
            for name, machine in stages.items()
            if name in asking
        }
        self._stages = stages
        self.asking = frozenset(name for name, sources in self._sources.items() if sources)
        """The stages that ask."""

    def begin(self) -> list[Unsaid]:
        """Ask for the first time; return promises for stages that have moved away."""
        unsaid: list[Unsaid] = []
        asking = {channel.name for sources in self._sources.values() for _, channel, _ in sources}
        for machine in self._stages.values():
            for channel in machine.outputs.requested:
                if channel.name in asking:
                    continue
                if (message := machine.outputs.ask_no_more(channel.name)) is not None:
                    unsaid.append(Unsaid(machine, channel, message))
        for name in self._sources:
            unsaid += self.after(self._stages[name])
        return unsaid

    def after(self, machine: StageMachine) -> Iterable[Unsaid]:
        """Ask for what a stage can use after its slice; return what is there already.

        It can use what its gate needs, and what was requested of itself.
        """
        sources, gate = self._sources[machine.stage.name], machine.gate
        if gate is None:
            return ()
        unsaid: list[Unsaid] = []
        wanted_ns = machine.outputs.least_requested_ns
        for writer, channel, source in sources:
            use_ns = gate.use_ns(writer)
            if gate.promised_ns(writer) < wanted_ns < use_ns:
                use_ns = wanted_ns
            before_ns = source.outputs.least_requested_ns
            if message := source.outputs.ask(channel.name, use_ns):
                unsaid.append(Unsaid(source, channel, message))
            elif source.outputs.least_requested_ns != before_ns and self._sources.get(
                source.stage.name
            ):
                unsaid += self.after(source)
        return unsaid


def _asking(stages: Mapping[str, StageMachine]) -> set[str]:
    """Return the stages that ask: each consumer that needs promises asks, too."""
    asking: set[str] = set()
    for name, machine in reversed(list(stages.items())):
        consumers = [c.target for c in machine.stage.outputs if c.needs_promises]
        if asking.issuperset(consumers) and _may_ask(machine):
            asking.add(name)
    return asking


def _may_ask(machine: StageMachine) -> bool:
    stage = machine.stage
    if not (stage.step.traits.needs_rows and stage.is_ready_only):
        return False
    return (
        machine.gate is not None and not machine.is_sampled and all(map(_is_certain, stage.inputs))
    )


def _is_certain(channel: Channel) -> bool:
    """Whether all that comes on it is at least as new as was promised."""
    return not may_be_older(channel) and "arrivals" not in channel.row_fields

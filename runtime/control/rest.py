"""Time that events still take after a step that sheds: it bounds the flow's latency.

```
source ── pattern (sheds) ── join ── out        rest of `pattern`: join + out, with their queues
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slackwater.runtime.control.commands import Shed
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model.subject import Subject

AHEAD = 1
"""Intervals ahead for which the growth of the last one is assumed to go on."""


class RestDownstream:
    """Tells steps that shed how long events travel downstream of them; a `Decider`.

    Each downstream step counts with what rows took there in the last interval, or what held rows
    have waited if that is more, and with the travel time to it; summed over the worst path, as in
    [ssg] Eq. 2. If the sum grew, it is assumed to grow by as much again.

    Rows that wait for the slot of a step that sheds wait for its work, and the oldest go first:
    the age of its own queue includes that wait, and dropping shortens it. So a step without a gate
    in such a slot, of the same step or of another, counts with the mean work of its slices.

    Args:
        graph: graph of a flow in which a step sheds.
    """

    name = "shedding"

    def __init__(self, graph: FlowGraph) -> None:
        self._nodes = {step.subject: step for step in graph.steps}
        self._feeds: dict[Subject, list[Subject]] = {step: [] for step in self._nodes}
        for step, inputs in graph.inputs.items():
            for source in inputs:
                self._feeds[source].append(step)
        self._shedding = graph.shedding
        at_work = (graph.parts_for(Shed(step, 0)) for step in graph.shedding)
        self._slots = {part.slot for parts in at_work for part in parts}
        self._before: dict[Subject, int] = {}  # {step that sheds: its rest in the last interval}

    def begin(self) -> Sequence[Shed]:
        """Return no commands: nothing was measured yet."""
        return []

    def decide(self, interval: int, samples: Mapping[Subject, StageSample]) -> list[Shed]:
        """Return the rest for each step that sheds."""
        del interval
        rest: dict[Subject, int] = {}
        for step in reversed(self._feeds):  # topological order, from the end
            after = [
                rest[target] + self._took_ns(target, samples.get(target))
                for target in self._feeds[step]
            ]
            rest[step] = max(after, default=0)
        commands = []
        for step in self._shedding:
            now_ns = rest[step]
            grown_ns = max(now_ns - self._before.get(step, now_ns), 0)
            self._before[step] = now_ns
            commands.append(Shed(step, now_ns + AHEAD * grown_ns))
        return commands

    def _took_ns(self, name: Subject, sample: StageSample | None) -> int:
        if sample is None:
            return 0
        step = self._nodes[name]
        is_there = any(part.slot in self._slots for part in step.parts)
        if is_there and (step.is_sink or len(step.inputs) == 1):
            return sample.busy_ns // max(sample.slices, 1)
        return max(sample.took_ns, sample.held_ns + sample.comm_ns)

"""Time that events still take after a stage that sheds: it bounds the flow's latency.

```
source ── pattern (sheds) ── join ── out        rest of `pattern`: join + out, with their queues
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slackwater.runtime.control.commands import Shed
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.samples import StageSample

AHEAD = 1
"""Intervals ahead for which the growth of the last one is assumed to go on."""


class RestBehind:
    """Tells stages that shed how long events travel downstream of them; a `Decider`.

    Each downstream stage counts with what rows took there in the last interval, or what held rows
    have waited if that is more, and with the travel time to it; summed over the worst path, as in
    [ssg] Eq. 2. If the sum grew, it is assumed to grow by as much again.

    Rows that wait for the slot of a stage that sheds wait for its work, and the oldest go first:
    the age of its own queue includes that wait, and dropping shortens it. So a stage without a gate
    in such a slot, of the same stage or of another, counts with the mean work of its slices.

    Args:
        graph: of a flow in which a stage sheds.
    """

    name = "shedding"

    def __init__(self, graph: FlowGraph) -> None:
        self._nodes = {stage.name: stage for stage in graph.stages}
        self._feeds: dict[str, list[str]] = {stage.name: [] for stage in graph.stages}
        for stage in graph.stages:
            for source in stage.inputs:
                self._feeds[source].append(stage.name)
        self._shedding = graph.shedding
        self._slots = {self._nodes[stage].slot for stage in graph.shedding}
        self._before: dict[str, int] = {}  # {stage that sheds: its rest in the last interval}

    def begin(self) -> Sequence[Shed]:
        """Return no commands: nothing was measured yet."""
        return []

    def decide(self, interval: int, samples: Mapping[str, StageSample]) -> list[Shed]:
        """Return the rest for each stage that sheds."""
        del interval
        rest: dict[str, int] = {}
        for stage in reversed(self._feeds):  # topological order, from the end
            after = [
                rest[target] + self._took_ns(target, samples.get(target))
                for target in self._feeds[stage]
            ]
            rest[stage] = max(after, default=0)
        commands = []
        for stage in self._shedding:
            now_ns = rest[stage]
            grown_ns = max(now_ns - self._before.get(stage, now_ns), 0)
            self._before[stage] = now_ns
            commands.append(Shed(stage, now_ns + AHEAD * grown_ns))
        return commands

    def _took_ns(self, name: str, sample: StageSample | None) -> int:
        if sample is None:
            return 0
        stage = self._nodes[name]
        if stage.slot in self._slots and (stage.is_sink or len(stage.inputs) == 1):
            return sample.busy_ns // max(sample.slices, 1)
        return max(sample.took_ns, sample.held_ns + sample.comm_ns)

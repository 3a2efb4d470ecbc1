"""What events still take behind a stage that sheds: its bound is on the latency of the flow.

```
source ── pattern (sheds) ── join ── out        rest of `pattern`: join + out, with their queues
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runtime.control.commands import Shed
from runtime.control.graph import FlowGraph, StageNode
from runtime.measure.samples import StageSample

AHEAD = 1
"""So many intervals ahead the growth of the last one is taken to go on."""


class RestBehind:
    """Tells stages that shed how long events are under way behind them; a `Decider`.

    Of each stage behind it counts what rows took there in the interval that is over, or what those
    have waited that are still held, if that is more, and what messages travelled to it; summed over
    the worst path, as in [ssg] Eq. 2. If that grew, it is taken to grow on by as much.

    Rows that wait for the same slot wait for the work of the stage that sheds, among others: the
    age of its own queue has that already. So a stage of one input in that slot counts with the mean
    work of its slices.

    Args:
        graph: of a flow in which a stage sheds.
    """

    name = "shedding"

    def __init__(self, graph: FlowGraph) -> None:
        self._nodes = {stage.name: stage for stage in graph.stages}
        self._feeds: dict[str, list[str]] = {stage.name: [] for stage in graph.stages}
        for stage in graph.stages:
            for one in stage.inputs:
                self._feeds[one].append(stage.name)
        self._shedding = graph.shedding
        self._before: dict[str, int] = {}  # {stage that sheds: its rest in the last interval}

    def begin(self) -> Sequence[Shed]:
        """Return nothing: nothing has been seen."""
        return []

    def decide(self, interval: int, samples: Mapping[str, StageSample]) -> list[Shed]:
        """Return what each is to reckon with."""
        del interval
        told = []
        for stage in self._shedding:
            now_ns = self._rest_ns(stage, samples)
            grown_ns = max(now_ns - self._before.get(stage, now_ns), 0)
            self._before[stage] = now_ns
            told.append(Shed(stage, now_ns + AHEAD * grown_ns))
        return told

    def _rest_ns(self, shedding: str, samples: Mapping[str, StageSample]) -> int:
        """Return the worst path from a stage to egress."""
        slot = self._nodes[shedding].slot
        rest: dict[str, int] = {}
        for stage in reversed(self._feeds):  # topological order, from the end
            after = [
                rest[one] + _took_ns(self._nodes[one], samples.get(one), slot)
                for one in self._feeds[stage]
            ]
            rest[stage] = max(after, default=0)
            if stage == shedding:
                break
        return rest[shedding]


def _took_ns(stage: StageNode, sample: StageSample | None, slot: str) -> int:
    if sample is None:
        return 0
    if stage.slot == slot and len(stage.inputs) == 1:
        return sample.busy_ns // max(sample.slices, 1)
    return max(sample.took_ns, sample.held_ns + sample.comm_ns)

"""What events still take behind a stage that sheds: its bound is on the latency of the flow.

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
"""So many intervals ahead the growth of the last one is taken to go on."""


class RestBehind:
    """Tells stages that shed how long events are under way behind them; a `Decider`.

    Of each stage behind it counts what rows took there in the interval that is over, or what those
    have waited that are still held, if that is more, and what messages travelled to it; summed over
    the worst path, as in [ssg] Eq. 2. If that grew, it is taken to grow on by as much.

    Rows that wait for the slot of a stage that sheds wait for its work, and the oldest go first:
    the age of its own queue has that already, and dropping shortens it. So a stage without a gate
    in such a slot, of the same stage or of another, counts with the mean work of its slices.

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
        self._slots = {self._nodes[stage].slot for stage in graph.shedding}
        self._before: dict[str, int] = {}  # {stage that sheds: its rest in the last interval}

    def begin(self) -> Sequence[Shed]:
        """Return nothing: nothing has been seen."""
        return []

    def decide(self, interval: int, samples: Mapping[str, StageSample]) -> list[Shed]:
        """Return what each is to reckon with."""
        del interval
        rest: dict[str, int] = {}
        for stage in reversed(self._feeds):  # topological order, from the end
            after = [rest[one] + self._took_ns(one, samples.get(one)) for one in self._feeds[stage]]
            rest[stage] = max(after, default=0)
        told = []
        for stage in self._shedding:
            now_ns = rest[stage]
            grown_ns = max(now_ns - self._before.get(stage, now_ns), 0)
            self._before[stage] = now_ns
            told.append(Shed(stage, now_ns + AHEAD * grown_ns))
        return told

    def _took_ns(self, name: str, sample: StageSample | None) -> int:
        if sample is None:
            return 0
        stage = self._nodes[name]
        if stage.slot in self._slots and (stage.is_sink or len(stage.inputs) == 1):
            return sample.busy_ns // max(sample.slices, 1)
        return max(sample.took_ns, sample.held_ns + sample.comm_ns)

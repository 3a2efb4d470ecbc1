"""A policy of one's own: a gate waits for as long as the rest of the path leaves time for it.

Run it:      python -m examples.own_policy
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

import slackwater as sw


class Leftover:
    """Holds rows for what the slowest second of the rest has left of the deadline, less a tenth."""

    name = "leftover"

    def __init__(self, graph: sw.tuning.FlowGraph) -> None:
        self.graph, self.rest_ns = graph, 0

    def begin(self) -> Sequence[sw.tuning.Command]:
        """Return what to begin with: nothing is known of the rest."""
        return self.decide(-1, {})

    def decide(
        self, second: int, samples: Mapping[sw.tuning.Subject, sw.tuning.StageSample]
    ) -> Sequence[sw.tuning.Command]:
        """Return what to set now that a second is over; each call has a later one."""
        del second
        rest = [one.took_ns for name, one in samples.items() if name not in self.graph.tuned]
        self.rest_ns = max(self.rest_ns, sum(rest))
        left_ns = max(0.9 * (self.graph.deadline_ns or 0) - self.rest_ns, 0)
        rule = sw.tuning.ReleaseRule.hold(int(left_ns) // len(self.graph.tuned))
        return [sw.tuning.SetRelease(gate, rule) for gate in self.graph.tuned]


def build(*, seconds: int = 20) -> sw.Dataflow:
    """Return a flow of buses that come up to 3 s late, and loops that come at once."""
    flow = sw.Dataflow("own-policy", deadline="1s")
    t = np.arange(0, seconds, 0.05)
    sources = []
    for name, lag_s in (("buses", 1.5 + 1.5 * np.sin(t / 3)), ("loops", 0 * t)):
        arrival_s = np.maximum.accumulate(t + lag_s)
        rows = pa.table(
            {
                "event_time": (t * 1e9).astype("datetime64[ns]"),
                "arrival": (arrival_s * 1e9).astype("datetime64[ns]"),
                "area": np.arange(len(t)) % 10,
            }
        )
        sources.append(
            flow.source(name, sw.table(rows), event_time="event_time", arrival="arrival", speed=1.0)
        )
    buses, loops = sources
    buses.join(loops, on="area", within="2s", name="pairs").sink("jams", sw.collect_sink())
    return flow


def main() -> None:
    """Run it in the simulator."""
    with sw.Simulation() as nodes:
        report = nodes.submit(build(), tuning=sw.Tuning(policy=Leftover)).wait()
    assert report.tuning is not None, "the flow has a deadline"
    gate = report.tuning.gates[0]
    kept = report.tuning.seconds - report.tuning.over
    print(f"{gate.step}: {gate.rule.text}, set by {gate.by}; kept {kept} seconds")


if __name__ == "__main__":
    main()

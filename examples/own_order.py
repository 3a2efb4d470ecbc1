"""An order of one's own: on a core that cannot keep up, alarms do not wait behind statistics.

Run it:      python -m examples.own_order
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import slackwater as sw

BUSY = sw.testing.CostModel(stages={"totals": 12_000_000.0})
"""A row of the statistics costs 12 ms, and 100 come a second: a core can do five sixths of that."""


class UrgentFirst:
    """Steps of these names go before all others, and rows from them before other rows.

    Among equals the earliest stimulus goes first, as without an order.
    """

    def __init__(self, *urgent: str) -> None:
        self.urgent = frozenset(urgent)

    def first(self, stages: Sequence[sw.schedule.StageView], now_ns: int) -> sw.schedule.StageView:
        """Return the stage whose slice is next, of those that could run."""
        del now_ns
        return min(
            stages,
            key=lambda one: (
                one.subject.step not in self.urgent,
                one.stimulus_ns,
                one.progress_ns,
            ),
        )

    def first_path(
        self, paths: Sequence[sw.schedule.PathView], now_ns: int
    ) -> sw.schedule.PathView:
        """Return the path whose message a stage takes next, of those on which one waits."""
        del now_ns
        return min(paths, key=lambda one: (one.source.step not in self.urgent, one.stimulus_ns))


def limits(order: object = None) -> sw.Limits:
    """Return small slices: what is urgent waits at most for the one that is under way."""
    return sw.Limits(order=order, min_slice_rows=1, max_slice_rows=5)


def build(*, seconds: int = 10) -> sw.Dataflow:
    """Return a flow with five alarms a second, and reports that are counted, a hundred a second."""
    flow = sw.Dataflow("own-order")
    alarms, reports = (
        flow.source(name, sw.table(_rows(seconds, every_s)), event_time="ts", speed=1.0)
        for name, every_s in (("alarms", 0.2), ("reports", 0.01))
    )
    alarms.sink("rung", sw.collect_sink())
    reports.aggregate(by="area", window=sw.tumbling("1s"), name="totals", n=sw.count()).sink(
        "counted", sw.collect_sink()
    )
    return flow


def _rows(seconds: int, every_s: float) -> pa.Table:
    t = np.arange(0, seconds, every_s)
    return pa.table({"ts": (t * 1e9).astype("datetime64[ns]"), "area": np.arange(len(t)) % 10})


def longest_ms(order: object = None) -> float:
    """Return how long the slowest alarm took, in the simulator, on one core."""
    with sw.Simulation(1, cost=BUSY) as nodes:
        job = nodes.submit(build(), limits=limits(order))
        job.wait()
        return job.latency["rung"]["max_ms"]


def main() -> None:
    """Compare."""
    print(f"by stimulus     {longest_ms():8.1f} ms for the slowest alarm")
    print(f"urgent first    {longest_ms(UrgentFirst('alarms', 'rung')):8.1f} ms")


if __name__ == "__main__":
    main()

"""The upper bound of a prediction against the simulator, with slices as they are by default."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.mace.random_flow import random_flow
from slackwater.runtime.foresight.latency_estimate import LatencyEstimate
from slackwater.runtime.simulate import CostModel, LinkModel
from slackwater.simulation import Simulation

LIMITS = sw.Limits(credit_rows=10_000_000, gate_rows=10_000_000)
"""Queues without bound; slices of the default length."""
SECONDS = 6.0


@pytest.mark.parametrize("seed", range(1, 7))
def test_with_default_slices_no_latency_is_above_the_upper_bound(seed: int) -> None:
    """Rows come evenly within a period, as A-2 of [mace] has it; odd seeds have links."""
    drawn = random_flow(seed, seconds=SECONDS, is_even=True)
    host = drawn.host(1 + seed % 3)
    made = host.predict(
        drawn.flow,
        drawn.trace(),
        sample=drawn.sample,
        horizon=SECONDS,
        placement=host.plan(drawn.flow).slots,
        limits=LIMITS,
    )
    job = host.submit(drawn.flow, placement=made.plan.slots, limits=LIMITS)
    worst_s = max(sink.latency.max_ns for sink in job.wait().sinks) / 1e9
    assert worst_s <= made.estimate.bounds_s[1]


def asked_and_run(*, rows_at_once: int) -> tuple[LatencyEstimate, float]:
    """Source a, cheap, shares a slot with a stage that is seconds behind, and sends over a link.

    ```
    b ─▶ slow    30 ms a row, behind by 2 s       node-1
    a ─┐         its turn comes every 2 s
       └─ link, 100 rows/s ─▶ out-a               node-2
    ```
    """
    flow = sw.Dataflow("whole")
    made = {}
    for name, rate, until_s in (("a", 40, 6.0), ("b", 50, 4.0)):
        ts = pa.array((np.arange(rate * until_s) / rate * 1e9).astype("int64"), pa.timestamp("ns"))
        table = sw.table(pa.table({"ts": ts, "n": np.arange(len(ts))}))
        made[name] = flow.source(name, table, event_time="ts", arrival="ts", speed=1)
    made["a"].sink("out-a", sw.collect_sink())
    made["b"].merge(name="slow", slack="0s").sink("out-b", sw.collect_sink())
    cost = CostModel(per_slice_ns=0, per_row_ns=1_000, stages={"slow": 30e6})
    host = Simulation(2, cost=cost, link=LinkModel(delay_ns=0, bytes_per_s=32 * 100))
    limits = replace(LIMITS, max_slice_rows=rows_at_once)
    placement = {"*": "node-1", "out-a": "node-2"}
    cheap = dict.fromkeys(("a", "b", "out-a", "out-b"), "1us")
    asked = host.predict(
        flow,
        {"a": [4.0] * 60, "b": [5.0] * 40 + [0.0] * 20},
        placement=placement,
        limits=limits,
        horizon="6s",
        costs={**cheap, "slow": "30ms"},
    )
    job = host.submit(flow, placement=placement, limits=limits)
    worst = {sink.name: sink.latency.max_ns / 1e9 for sink in job.wait().sinks}
    return asked.estimate, max(worst.values())


def test_a_message_on_a_link_is_one_piece_however_many_rows_it_has() -> None:
    found, worst_s = asked_and_run(rows_at_once=10_000)
    assert worst_s <= found.bounds_s[1]
    by_events, worst_by_row_s = asked_and_run(rows_at_once=1)
    assert worst_by_row_s <= by_events.bounds_s[1]
    assert worst_s > by_events.bounds_s[1] + 0.5  # [mace]'s own ε is too little

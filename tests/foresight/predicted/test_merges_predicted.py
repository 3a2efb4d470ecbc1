"""What predictions do not know: behind a merge older rows stand behind newer ones on a channel."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.foresight.query_graph import QueryGraph, QueryOperator
from slackwater.runtime.simulate import CostModel, LinkModel
from tests.support.event_system import run_events

RATES = {"a": (50, 4.0), "b": (40, 8.0)}
"""{source: rows a second, seconds for which they come}."""
HEAVY_S, WORK_S = 0.03, 0.02
LIMITS = sw.Limits(credit_rows=10_000_000, gate_rows=10_000_000, min_slice_rows=1, max_slice_rows=1)


def times_s(name: str) -> list[float]:
    rate, until_s = RATES[name]
    return [n / rate for n in range(round(rate * until_s))]


def flow() -> sw.Dataflow:
    """a is 2 s behind when it meets b, which comes at once.

    ```
    a ─▶ heavy ─┐
                both ─▶ work ─▶ out        load of work 1.47: 2.8 s of rows before it after 6 s
    b ──────────┘
    ```
    """
    made = sw.Dataflow("merged")
    streams = {}
    for name in RATES:
        ts = pa.array((np.array(times_s(name)) * 1e9).astype("int64"), pa.timestamp("ns"))
        table = sw.table(pa.table({"ts": ts, "n": np.arange(len(ts))}))
        streams[name] = made.source(name, table, event_time="ts", arrival="ts", speed=1)
    heavy = streams["a"].merge(name="heavy", slack="0s")
    both = heavy.merge(streams["b"], name="both", slack="0s")
    both.merge(name="work", slack="0s").sink("out", sw.collect_sink())
    return made


def test_what_is_late_at_a_merge_waits_for_newer_rows_too_and_no_estimate_says_so() -> None:
    """docs/decisions/2026-11-23-stimulus-order.md. Mend the estimate, and this test is to go."""
    placement = {"*": "node-2", "a": "node-1", "heavy": "node-1", "work": "node-3", "out": "node-3"}
    work = {"heavy": HEAVY_S * 1e9, "work": WORK_S * 1e9}
    cost = CostModel(per_slice_ns=0, per_row_ns=1_000, stages=work)
    host = sw.Simulation(3, cost=cost, link=LinkModel(delay_ns=0))
    made = host.predict(
        flow(),
        {name: np.histogram(times_s(name), np.arange(101) / 10)[0].astype(float) for name in RATES},
        placement=placement,
        limits=LIMITS,
        horizon="10s",
        costs={**dict.fromkeys(("a", "b", "both", "out"), "1us"), "heavy": HEAVY_S, "work": WORK_S},
    )
    graph = QueryGraph(
        ("a", "b"),
        (
            QueryOperator(name="heavy", inputs=("a",), cost_s=(HEAVY_S,), selectivity=(1.0,)),
            QueryOperator(
                name="work",
                inputs=("heavy", "b"),
                cost_s=(WORK_S, WORK_S),
                selectivity=(1.0, 1.0),
            ),
        ),
    )
    in_order = run_events(graph, {name: times_s(name) for name in RATES}, [0, 1])
    worst_s = float(in_order.latency_s.max())
    assert made.estimate.worst_s == pytest.approx(worst_s, abs=0.1)  # as [mace] queues rows
    report = host.submit(flow(), placement=placement, limits=LIMITS).wait()
    measured_s = max(sink.latency.max_ns for sink in report.sinks) / 1e9
    late_s, in_front_s = 2.0, 6 * ((1 / HEAVY_S + RATES["b"][0]) * WORK_S - 1)
    assert measured_s == pytest.approx(late_s + in_front_s, abs=0.1)
    assert measured_s > made.estimate.bounds_s[1] + 1.0

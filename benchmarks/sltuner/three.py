"""Three gates in a diamond that share one deadline of 6 s, before a sink whose work piles up.

```
buses ──┐
        all (gate 1) ─┬─ busy loops ── near (gate 2) ─┐
loops ──┘             │   coaches ─────┘               together (gate 3) ── jams
                      └─ late buses ──────────────────┘
```

Buses report late by the alternating Zipf policy, coaches by the same 35 s later, every fifth of
them, in 20 areas. One path has three gates and the other two, and what the sink takes moves: for
10 s of every 30 it takes 1.3 times as long as results come in.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Options, Result
from benchmarks.sltuner import late_city
from benchmarks.sltuner.chain import SHIFT_NS
from benchmarks.sltuner.contest import Contest, opened
from benchmarks.sltuner.deadline import Experiment
from benchmarks.sltuner.zipf import cost_of_busy_sink
from examples.city import zipf_delays

SECONDS, QUICK_SECONDS = 400, 110
DEADLINE_S = 6
BUSY = 1.3
RESULTS_PER_S = 200
EVERY, AREAS = 5, 20
LATE_UP_TO = 450
"""Late buses are 400 s behind; loops that are not busy count 500 cars."""
CONTEST = Contest(low="1s", high="6s", at_most=1.1)


def run(options: Options) -> Result:
    """Run every policy over the same streams."""
    one = experiment(QUICK_SECONDS if options.quick else SECONDS)
    result = opened(one)
    CONTEST.hold(result, one, options)
    return result


def experiment(seconds: int) -> Experiment:
    """Return the experiment of a length."""
    return Experiment(
        "sltuner-three",
        lambda seed, sink: flow_of(seed, sink, seconds=seconds),
        seconds,
        ("node-1", "node-2", "node-3", "node-4"),
        {"all": "node-3", "near": "node-3", "together": "node-3", "jams": "node-4"},
        cost_of_busy_sink(BUSY, results_per_s=RESULTS_PER_S),
    )


def flow_of(seed: int, sink: sw.connectors.Output, *, seconds: int) -> sw.Dataflow:
    """Return the flow over `seconds` of streams drawn from a seed."""
    rng = np.random.default_rng(seed)
    flow = sw.Dataflow("three", deadline=DEADLINE_S, keep="slack")
    times_ns = late_city.times(seconds)
    loops_ns = late_city.times(seconds, offset_ns=1_000_000)
    late_ns = zipf_delays(times_ns + SHIFT_NS, rng) - SHIFT_NS
    tables = {
        "buses": late_city.bus_table(rng, times_ns, zipf_delays(times_ns, rng)),
        "loops": late_city.loop_table(rng, loops_ns),
        "coaches": late_city.bus_table(rng, times_ns, late_ns),
    }
    source = {name: late_city.source(flow, name, _fewer(rows)) for name, rows in tables.items()}
    every = (
        source["buses"]
        .select("area", value="delay_s")
        .merge(source["loops"].select("area", value="flow"), name="all")
    )
    value = sw.col("value")
    busy = every.filter(value > late_city.FLOW_OVER)
    late = every.filter((value > late_city.DELAY_OVER) & (value <= LATE_UP_TO))
    near = source["coaches"].join(
        busy,
        on="area",
        within=late_city.WITHIN,
        where=sw.col("delay_s") > late_city.DELAY_OVER,
        name="near",
    )
    together = near.select("area", flow="value").join(
        late.select("area", delay="value"), on="area", within="1s", name="together"
    )
    together.sink("jams", sink)
    return flow


def _fewer(rows: pa.Table) -> pa.Table:
    """Return every fifth row, of fewer areas: simulated sooner, and as many results."""
    rows = rows.take(np.arange(0, len(rows), EVERY))
    areas = pa.array(rows["area"].to_numpy() % AREAS)
    return rows.set_column(rows.column_names.index("area"), "area", areas)

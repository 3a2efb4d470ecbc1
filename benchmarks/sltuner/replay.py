"""History at 60 times its speed: by the clock what `sltuner-zipf` is, event time runs ahead.

A minute of event time goes by in each second, buses are up to seven minutes late in it, and the
join reaches five minutes; so by the clock, of which the deadline is, all is as in `sltuner-zipf`. A
rule that takes event time for the clock gives order away sixty times too soon.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Options, Result
from benchmarks.sltuner import late_city
from benchmarks.sltuner.contest import Contest, opened
from benchmarks.sltuner.deadline import Experiment
from benchmarks.sltuner.zipf import cost_of_busy_sink
from examples.city import zipf_delays

SECONDS, QUICK_SECONDS = 400, 110
DEADLINE_S, SPEED = 6, 60
WITHIN = "5m"
CONTEST = Contest(low="1s", at_most=1.1)


def run(options: Options) -> Result:
    """Run every policy over the same streams."""
    one = experiment(QUICK_SECONDS if options.quick else SECONDS)
    result = opened(one)
    CONTEST.hold(result, one, options)
    return result


def experiment(seconds: int) -> Experiment:
    """Return the experiment of a length, by the clock."""
    return Experiment(
        "sltuner-replay",
        lambda seed, sink: flow_of(seed, sink, seconds=seconds),
        seconds,
        ("node-1", "node-2", "node-3", "node-4"),
        {"congestion": "node-3", "jams": "node-4"},
        cost_of_busy_sink(),
    )


def flow_of(seed: int, sink: sw.connectors.Output, *, seconds: int) -> sw.Dataflow:
    """Return the flow over `seconds` of the clock, of streams drawn from a seed."""
    rng = np.random.default_rng(seed)
    times_ns = late_city.times(seconds)
    buses = late_city.bus_table(rng, times_ns, zipf_delays(times_ns, rng))
    loops = late_city.loop_table(rng, late_city.times(seconds, offset_ns=1_000_000))
    flow = sw.Dataflow("replay", deadline=DEADLINE_S, keep="slack")
    bus, loop = (
        late_city.source(flow, name, _stretched(rows), speed=SPEED)
        for name, rows in (("buses", buses), ("loops", loops))
    )
    jams = bus.join(loop, on="area", within=WITHIN, where=late_city.jam(), name="congestion")
    jams.sink("jams", sink)
    return flow


def _stretched(rows: pa.Table) -> pa.Table:
    """Return the rows with event and arrival times `SPEED` times as far apart."""
    for name in ("ts", "arrival"):
        times = pa.array(rows[name].to_numpy() * SPEED)
        rows = rows.set_column(rows.column_names.index(name), name, times)
    return rows

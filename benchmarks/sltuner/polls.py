"""Two feeds that are polled every 12 s, out of step, under a deadline of 5 s.

```
buses   |           |           |        a poll tells all that happened since the one before
loops    |           |            |      0.2 s later each time, so up to 6.6 s behind the other
```

Event time stands still between polls and then jumps by 12 s, so a slack in event time lets a whole
poll go at once, or none. Rows of the feed that was polled last wait for the other's next poll, too
far off: those are let go out of order, whoever decides. Which of the others are is the question.
"""

from __future__ import annotations

import numpy as np

import slackwater as sw
from benchmarks.frame import Options, Result
from benchmarks.sltuner import late_city
from benchmarks.sltuner.contest import Contest, opened
from benchmarks.sltuner.deadline import Experiment
from slackwater.runtime.model import NS_PER_SECOND

SECONDS, QUICK_SECONDS = 400, 110
DEADLINE_S = 5
EVERY_NS, LATER_NS = 12 * NS_PER_SECOND, NS_PER_SECOND // 5
CONTEST = Contest(low="1s", high="30s", at_most=1.1)


def run(options: Options) -> Result:
    """Run every policy over the same streams."""
    one = experiment(QUICK_SECONDS if options.quick else SECONDS)
    result = opened(one)
    CONTEST.hold(result, one, options)
    return result


def experiment(seconds: int) -> Experiment:
    """Return the experiment of a length."""
    return Experiment(
        "sltuner-polls",
        lambda seed, sink: flow_of(seed, sink, seconds=seconds),
        seconds,
        ("node-1", "node-2", "node-3", "node-4"),
        {"congestion": "node-3", "jams": "node-4"},
    )


def flow_of(seed: int, sink: sw.connectors.Output, *, seconds: int) -> sw.Dataflow:
    """Return the flow over `seconds` of streams drawn from a seed."""
    rng = np.random.default_rng(seed)
    times_ns = late_city.times(seconds)
    loops_ns = late_city.times(seconds, offset_ns=1_000_000)
    flow = sw.Dataflow("polls", deadline=DEADLINE_S, keep="slack")
    buses = late_city.source(
        flow, "buses", late_city.bus_table(rng, times_ns, polled_ns(times_ns, EVERY_NS))
    )
    loops = late_city.source(
        flow, "loops", late_city.loop_table(rng, loops_ns, polled_ns(loops_ns, EVERY_NS + LATER_NS))
    )
    jams = buses.join(
        loops, on="area", within=late_city.WITHIN, where=late_city.jam(), name="congestion"
    )
    jams.sink("jams", sink)
    return flow


def polled_ns(times_ns: late_city.Ints, every_ns: int) -> late_city.Ints:
    """Return when each event arrives: with the next poll."""
    return (times_ns // every_ns + 1) * every_ns

"""[ssg] Fig. 13: buses that fall behind for ever, under a deadline of 35 s.

Bus event i arrives i × 1 ms late, so that the one of second 70 comes 35 s late, at second 105.
From then on no policy can wait for the buses and keep the deadline, and when they are further
behind than the window is long they find no partner any more.
"""

from __future__ import annotations

import numpy as np

import slackwater as sw
from benchmarks.frame import Options, Result
from benchmarks.sltuner import late_city
from benchmarks.sltuner.contest import Contest, opened
from benchmarks.sltuner.deadline import Experiment
from examples.city import constant_delays
from slackwater.runtime.model import NS_PER_SECOND

SECONDS, QUICK_SECONDS = 250, 125
DEADLINE_S = 35
CONTEST = Contest(low="10s", high="100s")


def run(options: Options) -> Result:
    """Run every policy over the same streams."""
    one = experiment(QUICK_SECONDS if options.quick else SECONDS)
    result = opened(one)
    CONTEST.hold(result, one, options)
    return result


def experiment(seconds: int, deadline_s: int = DEADLINE_S) -> Experiment:
    """Return the experiment of a length."""
    return Experiment(
        "sltuner-drift",
        lambda seed, sink: flow_of(seed, sink, seconds=seconds, deadline_s=deadline_s),
        seconds,
        ("node-1", "node-2", "node-3"),
        {},
    )


def flow_of(seed: int, sink: sw.connectors.Output, *, seconds: int, deadline_s: int) -> sw.Dataflow:
    """Return the flow over `seconds` of streams drawn from a seed."""
    rng = np.random.default_rng(seed)
    times_ns = late_city.times(seconds)
    arrival_ns = constant_delays(times_ns, rng)
    arrived = arrival_ns < seconds * NS_PER_SECOND  # nobody waits for what comes after the end
    return late_city.congestion(
        "drift",
        sink,
        deadline_s=deadline_s,
        seconds=seconds,
        bus_times_ns=times_ns[arrived],
        arrival_ns=arrival_ns[arrived],
        rng=rng,
    )

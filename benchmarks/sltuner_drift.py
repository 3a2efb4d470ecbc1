"""[ssg] Fig. 13: buses that fall behind for ever, under a deadline of 35 s.

Bus event i arrives i × 1 ms late, so that the one of second 70 comes 35 s late, at second 105.
From then on no policy can wait for the buses and keep the deadline, and when they are further
behind than the window is long they find no partner any more.
"""

from __future__ import annotations

from functools import partial

import numpy as np

import slackwater as sw
from benchmarks import late_city
from benchmarks.clairvoyant import QUICK_ROUNDS, ROUNDS, clairvoyant
from benchmarks.deadline import HEADER, Experiment, judge, run_all
from benchmarks.frame import Options, Result
from benchmarks.panels import draw
from examples.city import constant_delays
from runtime.model import NS_PER_SECOND

SECONDS, QUICK_SECONDS = 250, 125
DEADLINE_S = 35
RIVALS = ("even split", "even split, last second", "10s", "100s", "max timestamp", "tcp", "k-slack")
BREAKING = ("static 100 s", "max timestamp")
QUICK_RIVALS = ("even split", "100s", "max timestamp")


def run(options: Options) -> Result:
    """Run every policy over the same streams."""
    seconds = QUICK_SECONDS if options.quick else SECONDS
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    one = experiment(seconds)
    result = Result(
        f"{seconds} s of virtual time, {one.first_second} s to warm up; simulated, one stream seed",
        HEADER,
    )
    outcomes = run_all(
        one,
        seed=options.seed,
        rivals=QUICK_RIVALS if options.quick else RIVALS,
        floor=partial(clairvoyant, one, seed=options.seed, rounds=rounds),
    )
    judge(result, outcomes, breaking=BREAKING, beats_rivals=not options.quick)
    result.notes.append(f"drawn: {draw(outcomes, one.name)}")
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


def flow_of(seed: int, sink: sw.SinkSpec, *, seconds: int, deadline_s: int) -> sw.Dataflow:
    """Return the flow over `seconds` of streams drawn from a seed."""
    rng = np.random.default_rng(seed)
    flow = sw.Dataflow("drift", deadline=f"{deadline_s}s")
    bus_times = late_city.times(seconds)
    arrival_ns = constant_delays(bus_times, rng)
    arrived = arrival_ns < seconds * NS_PER_SECOND  # nobody waits for what comes after the end
    bus_times, arrival_ns = bus_times[arrived], arrival_ns[arrived]
    buses = late_city.source(flow, "buses", late_city.bus_table(rng, bus_times, arrival_ns))
    loops = late_city.source(
        flow, "loops", late_city.loop_table(rng, late_city.times(seconds, offset_ns=1_000_000))
    )
    buses.join(
        loops, on="area", within=late_city.WITHIN, where=late_city.jam(), name="congestion"
    ).sink("jams", sink)
    return flow

"""[ssg] Fig. 12: the alternating Zipf delay under a deadline of 6 s, for every policy.

500 buses and 500 loops a second, joined within 5 s. The sink is a slow one: for 10 s of every 30
it takes 1.5 times as long as results come in, so that up to 5 s of work pile up: the rest of the
path moves, and no constant slack keeps the deadline and stays near the floor.
"""

from __future__ import annotations

import numpy as np

import slackwater as sw
from benchmarks import late_city
from benchmarks.contest import LAST_SPLIT, Contest, opened, sweep
from benchmarks.deadline import FLOOR, Experiment, allowed
from benchmarks.frame import Claim, Options, Result
from examples.city import zipf_delays
from runtime.flow.steps import Keep
from runtime.model import NS_PER_SECOND
from runtime.simulate import CostModel

SECONDS, QUICK_SECONDS = 400, 110
DEADLINE_S = 6
RESULTS_PER_S = 500 * 0.2 * 500 * 0.1 * 10 / late_city.AREAS
CALM, BUSY = 0.3, 1.5
"""Utilisation of the sink."""
SWEEP_S = (1, 2, 3, 4, 5, 6)
CONTEST = Contest(low="1s", high="10s", also=("ready-only",), quick_also=(LAST_SPLIT,))


def run(options: Options) -> Result:
    """Run every policy over the same streams."""
    one = experiment(QUICK_SECONDS if options.quick else SECONDS)
    result = opened(one)
    outcomes = CONTEST.hold(result, one, options)
    if not options.quick:
        kept = [o for o in sweep(result, one, SWEEP_S, seed=options.seed) if o.keeps]
        result.claims.append(
            Claim(
                "best constant slack that keeps the deadline, or the test is none: slack-ready "
                "rows / (1.25 clairvoyant + 1 % of the events)",
                min(o.slack_ready_rows for o in kept) / allowed(outcomes[FLOOR]),
                ">=",
                1.0,
            )
        )
    result.notes.append("[ssg] Fig. 12 has no figures in its text: shapes are to be compared")
    return result


def flow_of(seed: int, sink: sw.SinkSpec, *, seconds: int, keep: Keep = "slack") -> sw.Dataflow:
    """Return the flow over `seconds` of streams drawn from a seed."""
    rng = np.random.default_rng(seed)
    times_ns = late_city.times(seconds)
    return late_city.congestion(
        "zipf",
        sink,
        deadline_s=DEADLINE_S,
        seconds=seconds,
        bus_times_ns=times_ns,
        arrival_ns=zipf_delays(times_ns, rng),
        rng=rng,
        keep=keep,
    )


def experiment(seconds: int) -> Experiment:
    """Return the experiment of a length."""
    per_result_ns = NS_PER_SECOND / RESULTS_PER_S

    def load(now_ns: int) -> float:
        return BUSY if 10 <= now_ns / NS_PER_SECOND % 30 < 20 else CALM

    return Experiment(
        "sltuner-zipf",
        lambda seed, sink: flow_of(seed, sink, seconds=seconds),
        seconds,
        ("node-1", "node-2", "node-3", "node-4"),
        {"congestion": "node-3", "jams": "node-4"},
        CostModel(stages={"jams": per_result_ns}, load={"jams": load}),
    )

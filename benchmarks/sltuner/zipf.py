"""[ssg] Fig. 12: the alternating Zipf delay under a deadline of 6 s, for every policy.

500 buses and 500 loops a second, joined within 5 s. The sink is a slow one: for 10 s of every 30
it takes 1.5 times as long as results come in, so that up to 5 s of work pile up: the rest of the
path moves, and no constant slack keeps the deadline and stays near the floor.
"""

from __future__ import annotations

import numpy as np

import slackwater as sw
from benchmarks.frame import Claim, Options, Result
from benchmarks.sltuner import late_city
from benchmarks.sltuner.contest import Contest, opened, sweep
from benchmarks.sltuner.deadline import Experiment
from benchmarks.sltuner.floors import floor_of
from benchmarks.sltuner.rival_policies import LAST_SPLIT
from examples.city import zipf_delays
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.traits import Keep
from slackwater.runtime.simulate import CostModel

SECONDS, QUICK_SECONDS = 400, 110
DEADLINE_S = 6
RESULTS_PER_S = 500 * 0.2 * 500 * 0.1 * 10 / late_city.AREAS
CALM, BUSY = 0.3, 1.5
"""Utilisation of the sink."""
SWEEP_S = range(1, 7)
"""Constant slacks."""
CONTEST = Contest(low="1s", high="10s", also=("ready-only",), quick_also=(LAST_SPLIT,))


def run(options: Options) -> Result:
    """Run every policy over the same streams."""
    one = experiment(QUICK_SECONDS if options.quick else SECONDS)
    result = opened(one)
    CONTEST.hold(result, one, options)
    if not options.quick:
        _claim_of_constants(result, one, options)
    result.notes.append("[ssg] Fig. 12 has no figures in its text: shapes are to be compared")
    return result


def _claim_of_constants(result: Result, one: Experiment, options: Options) -> None:
    """Tell what each constant slack makes of the run; claim that none is as near the floor."""
    outcomes = sweep(result, one, SWEEP_S, seed=options.seed)
    kept = [
        (outcome.slack_ready_rows, slack_s)
        for slack_s, outcome in zip(SWEEP_S, outcomes, strict=True)
        if outcome.keeps
    ]
    rows, slack_s = min(kept)
    result.figures["best constant slack"] = {"slack_s": slack_s, "slack_ready": rows}
    floor = floor_of(one.name, options)
    if floor is not None:
        result.claims.append(
            Claim(
                "best constant slack that keeps the deadline, or the test is none: slack-ready "
                "rows / (1.25 clairvoyant + 1 % of the events)",
                rows / floor.allowed(outcomes[0].events),
                ">=",
                1.0,
            )
        )


def flow_of(
    seed: int, sink: sw.connectors.Output, *, seconds: int, keep: Keep = "slack"
) -> sw.Dataflow:
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
    return Experiment(
        "sltuner-zipf",
        lambda seed, sink: flow_of(seed, sink, seconds=seconds),
        seconds,
        ("node-1", "node-2", "node-3", "node-4"),
        {"congestion": "node-3", "jams": "node-4"},
        cost_of_busy_sink(),
    )


def cost_of_busy_sink() -> CostModel:
    """Return the costs of a sink that cannot keep up for 10 s of every 30."""

    def load(now_ns: int) -> float:
        return BUSY if 10 <= now_ns / NS_PER_SECOND % 30 < 20 else CALM

    return CostModel(stages={"jams": NS_PER_SECOND / RESULTS_PER_S}, load={"jams": load})

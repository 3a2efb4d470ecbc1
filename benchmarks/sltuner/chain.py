"""Two gates that share one deadline: how the slack is divided between them.

```
buses ──┐
        all (gate 1) ──┐
loops ──┘              congestion (gate 2) ── jams        deadline 6 s
coaches ───────────────┘
```

Buses report late by the alternating Zipf policy, coaches by the same 35 s later: so one gate has to
wait while the other need not. The path of the coaches is the second one, with one gate. After
[ssg] §5.2.3, which searches over several operators but shows one.

With two replicas gate 2 is two gates in slots of their own, which have one slack.
"""

from __future__ import annotations

import numpy as np

import slackwater as sw
from benchmarks.frame import Claim, Options, Result
from benchmarks.sltuner import late_city
from benchmarks.sltuner.contest import Contest, opened
from benchmarks.sltuner.deadline import OURS, OVER_AT_MOST, Experiment, Outcome, run_all
from examples.city import zipf_delays
from slackwater.runtime.model import NS_PER_SECOND

SECONDS, QUICK_SECONDS = 400, 110
DEADLINE_S = 6
SHIFT_NS = 35 * NS_PER_SECOND
CONTEST = Contest(low="1s", high="6s")
SHARE_AT_MOST = 0.7


def run(options: Options) -> Result:
    """Run every policy over the same streams."""
    one = experiment(QUICK_SECONDS if options.quick else SECONDS)
    result = opened(one)
    outcomes = CONTEST.hold(result, one, options)
    if not options.quick:  # the gate of the coaches waits after second 105
        even = outcomes["even split"].slack_ready_rows
        result.claims.append(
            Claim(
                "sltuner: slack-ready rows / those of the even split",
                outcomes[OURS].slack_ready_rows / max(even, 1),
                "<=",
                SHARE_AT_MOST,
            )
        )
    (divided,) = run_all(experiment(one.seconds, replicas=2), seed=options.seed, rivals=[])
    _tell_divided(result, divided)
    return result


def experiment(seconds: int, *, replicas: int | None = None) -> Experiment:
    """Return the experiment of a length; None: `replicas=` is not written."""
    joins = {"congestion": "node-4"}
    if replicas is not None:
        joins = {f"congestion.{n}": f"node-{n + 3}" for n in range(1, replicas + 1)}
    return Experiment(
        "sltuner-chain",
        lambda seed, sink: flow_of(seed, sink, seconds=seconds, replicas=replicas),
        seconds,
        [f"node-{n}" for n in range(1, 4 + len(joins))],
        {"all": "node-3", **joins, "jams": "node-4"},
    )


def _tell_divided(result: Result, divided: Outcome) -> None:
    """Add the run with two replicas to the table, and claim that it keeps the deadline."""
    figures = divided.figures()
    name = f"{OURS}, 2 replicas"
    result.rows.append([name, f"{divided.over:.1%}", *list(figures.values())[1:-1]])
    result.figures[name] = figures
    result.claims.append(
        Claim(f"{name}: share of seconds over the deadline", divided.over, "<=", OVER_AT_MOST)
    )


def flow_of(
    seed: int, sink: sw.connectors.Output, *, seconds: int, replicas: int | None = None
) -> sw.Dataflow:
    """Return the flow over `seconds` of streams drawn from a seed."""
    rng = np.random.default_rng(seed)
    flow = sw.Dataflow("chain", deadline=DEADLINE_S, keep="slack")
    times = late_city.times(seconds)
    loops_ns = late_city.times(seconds, offset_ns=1_000_000)
    buses = late_city.source(
        flow, "buses", late_city.bus_table(rng, times, zipf_delays(times, rng))
    )
    loops = late_city.source(flow, "loops", late_city.loop_table(rng, loops_ns))
    late_ns = zipf_delays(times + SHIFT_NS, rng) - SHIFT_NS
    coaches = late_city.source(flow, "coaches", late_city.bus_table(rng, times, late_ns))
    seen = buses.select("area", value="delay_s").merge(
        loops.select("area", value="flow"), name="all"
    )
    coaches.join(
        seen,
        on="area",
        within=late_city.WITHIN,
        where=(sw.col("delay_s") > late_city.DELAY_OVER) & (sw.col("value") > late_city.FLOW_OVER),
        replicas=replicas,
        name="congestion",
    ).sink("jams", sink)
    return flow

"""The tuner beside the rules that hold by the clock, on five seeds, where it claims to win.

`sltuner-zipf`: fewer slack-ready rows than each of them that keeps the deadline. `sltuner-chain`:
at most 0.7 of the even split's. No floor is searched for here, which is what takes long in those.
"""

from __future__ import annotations

from benchmarks.frame import Options, Result
from benchmarks.sltuner import chain, zipf
from benchmarks.sltuner.contest import ALSO_HELD, HELD, SPLIT
from benchmarks.sltuner.deadline import HEADER, judge, run_all

SEEDS, QUICK_SEEDS = 5, 1
SECONDS, QUICK_SECONDS = 400, 100


def run(options: Options) -> Result:
    """Run both flows over the streams of each seed."""
    seeds, seconds = (QUICK_SEEDS, QUICK_SECONDS) if options.quick else (SEEDS, SECONDS)
    result = Result(
        f"{seconds} s of virtual time, {seeds} seeds, one gate (zipf) and two (chain); simulated",
        HEADER,
    )
    one_gate, two_gates = zipf.experiment(seconds), chain.experiment(seconds)
    rules = HELD if options.quick else (*HELD, *ALSO_HELD)
    for seed in range(options.seed, options.seed + seeds):
        outcomes = run_all(one_gate, seed=seed, rivals=rules)
        judge(result, outcomes, what=f"zipf {seed}", beats_rivals=not options.quick)
        if not options.quick:
            outcomes = run_all(two_gates, seed=seed, rivals=[SPLIT])
            judge(result, outcomes, what=f"chain {seed}", at_most=chain.SHARE_AT_MOST)
    return result

"""The tuner beside the rules that hold by the clock, on five seeds, where it claims to win.

`sltuner-zipf`: fewer slack-ready rows than each of them that keeps the deadline. `sltuner-chain`:
at most 0.7 of the even split's. No floor is searched for here, which is what takes long in those.
"""

from __future__ import annotations

from benchmarks import sltuner_chain, sltuner_zipf
from benchmarks.contest import ALSO_HELD, HELD, SPLIT
from benchmarks.deadline import HEADER, judge, run_all
from benchmarks.frame import Options, Result

SEEDS, QUICK_SEEDS = 5, 1
SECONDS, QUICK_SECONDS = 400, 100


def run(options: Options) -> Result:
    """Run both flows over the streams of each seed."""
    seeds, seconds = (QUICK_SEEDS, QUICK_SECONDS) if options.quick else (SEEDS, SECONDS)
    result = Result(
        f"{seconds} s of virtual time, {seeds} seeds, one gate (zipf) and two (chain); simulated",
        HEADER,
    )
    zipf, chain = sltuner_zipf.experiment(seconds), sltuner_chain.experiment(seconds)
    rules = HELD if options.quick else (*HELD, *ALSO_HELD)
    for seed in range(options.seed, options.seed + seeds):
        outcomes = run_all(zipf, seed=seed, rivals=rules)
        judge(result, outcomes, what=f"zipf {seed}", beats_rivals=not options.quick)
        if not options.quick:
            outcomes = run_all(chain, seed=seed, rivals=[SPLIT])
            judge(result, outcomes, what=f"chain {seed}", at_most=sltuner_chain.SHARE_AT_MOST)
    return result

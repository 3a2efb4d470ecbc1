"""One query of `mace-*` on two local Ray nodes whose operators use a core for what they do.

Each row of an operator costs it a set time of CPU. Two slots share this machine's cores with Ray
and with whatever else runs: what that adds is no part of the prediction, and is reported.
"""

from __future__ import annotations

from benchmarks.frame import Options, Result
from benchmarks.mace.judge import HEADER, of, span_of, tell
from benchmarks.mace.on_ray.judge import EXACT, FIRST, SPREAD, named
from benchmarks.mace.on_ray.service import AT_WORK
from benchmarks.mace.on_ray.slept import QUICK_SCALE, SCALE, Trial, one_run
from benchmarks.mace.on_ray.trial import WorkingCluster
from benchmarks.mace.trial import SAMPLE

SEEDS = 3
TRIAL = Trial(queries=1, nodes=2)


def run(options: Options) -> Result:
    """Predict and measure each seed; nothing is claimed."""
    seeds = 1 if options.quick else SEEDS
    scale = QUICK_SCALE if options.quick else SCALE
    result = Result(
        f"{75_000 * scale:,.0f} events in some {290 * scale:.0f} s, 14 operators on two local Ray "
        f"nodes, {seeds} seeds, w {scale:g} s; operators at work on this machine's cores",
        ["what", "measured", "statistics", "estimate", "seeds", *HEADER],
    )
    with WorkingCluster.of(TRIAL.nodes) as cluster:
        ran = [
            one_run(cluster, TRIAL, seed, scale=scale, way=AT_WORK)
            for seed in range(options.seed, options.seed + seeds)
        ]
    for name in (named(FIRST, SAMPLE), named(SPREAD, SAMPLE), EXACT):
        rows = of([one.judged(name) for one in ran], name, scale)
        tell(result, ["2 nodes", span_of(rows), name], rows, key=name)
    result.notes.append("[mace] has no figure of this: its servers had their processors alone")
    return result

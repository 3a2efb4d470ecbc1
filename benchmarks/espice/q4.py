"""[espice] Fig. 5f: ten contracts in fourteen steps, one of them four times, real quotes."""

from __future__ import annotations

from functools import partial

from benchmarks.espice.options import counted, steps_4
from benchmarks.espice.sequences import Feed, Steps, run_sequence
from benchmarks.frame import Options, Result

EVERY = 100
"""Events from one window to the next."""
FEEDS = (Feed(60, "a run"), Feed(60, "a run", "last"), Feed(60, "a minute"))


def run(options: Options) -> Result:
    """Try each feed, each window size and each rate."""
    query = Steps(steps_4, partial(counted, every=EVERY))
    return run_sequence("espice-q4", query, FEEDS, options, figure="Fig. 5f")

"""[espice] Fig. 5e, 6b: twenty contracts that rise, or fall, one after the other, real quotes."""

from __future__ import annotations

from benchmarks.espice.options import counted_by_leading, steps_3
from benchmarks.espice.sequences import Feed, Steps, run_sequence
from benchmarks.frame import Options, Result

FEEDS = (
    Feed(200, "a run"),
    Feed(60, "a run"),
    Feed(60, "a run", "last"),
    Feed(60, "a minute"),
)


def run(options: Options) -> Result:
    """Try each feed, each window size and each rate."""
    query = Steps(steps_3, counted_by_leading)
    return run_sequence("espice-q3", query, FEEDS, options, figure="Fig. 5e, 6b")

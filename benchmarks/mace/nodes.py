"""[mace] Fig. 8: 42 operators on 4 to 13 nodes, placed at random.

Three queries with visits of hosts of their own; once with one arrival pattern for all, once with a
pattern each. Each seed draws patterns, costs and a placement, on 4 nodes and up in turn.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.frame import Claim, Options, Result
from benchmarks.mace.judge import (
    ESTIMATES,
    HEADER,
    WIDTHS_S,
    Judged,
    claims,
    of,
    seeds_of,
)
from benchmarks.mace.load import EVENTS
from benchmarks.mace.query import STAGES
from benchmarks.mace.seeds import STATISTICS, one_seed, tell_all
from benchmarks.picture import Picture
from benchmarks.side_by_side import crossed

QUERIES = 3
QUICK_QUERIES = 2
NODES = tuple(range(4, 14))
MEDIAN = 0.03
PATTERNS = {"one pattern": True, "a pattern each": False}
PAPER = "[mace] Fig. 8: below 3 % on 4 to 13 nodes, one placement and pattern of each"


def run(options: Options) -> Result:
    """Predict and measure each seed under both kinds of patterns."""
    seeds, queries = seeds_of(options), QUICK_QUERIES if options.quick else QUERIES
    operators = queries * len(STAGES)
    result = Result(
        f"{EVENTS:,} events, {operators} operators, {len(seeds)} seeds, 4 to 13 nodes in turn; "
        "simulated",
        ["arrivals", "measured", "statistics", "w, s", "estimate", "seeds", *HEADER],
    )
    patterns = list(PATTERNS)[-1:] if options.quick else list(PATTERNS)

    def run_of(pattern: str, seed: int) -> list[Judged]:
        nodes, is_one_pattern = NODES[(seed - 1) % len(NODES)], PATTERNS[pattern]
        return one_seed(seed, queries=queries, nodes=nodes, is_one_pattern=is_one_pattern)

    runs = crossed(patterns, seeds, run_of, what="mace-nodes")
    found = {of: [one for judged in each for one in judged] for of, each in runs.items()}
    for pattern, each in found.items():
        tell_all(result, pattern, pattern, each, partial(_claims, pattern))
    result.notes += [PAPER, f"drawn: {draw(found)}"]
    return result


def _claims(pattern: str, what: str, found: list[Judged]) -> list[Claim]:
    """Mace is claimed for one pattern only: with several, work is held up, which it cannot see."""
    estimates = ESTIMATES if PATTERNS[pattern] else ESTIMATES[1:]
    return [
        claim for estimate in estimates for claim in claims(what, found, estimate, median=MEDIAN)
    ]


def draw(found: dict[str, list[Judged]]) -> Path:
    """Draw predicted beside measured worst latencies; return the path of the picture."""
    title = f"mace-nodes: 42 operators on 4 to 13 nodes, {STATISTICS[1]}, w = 1 s"
    picture = Picture(title, (10.0, 4.5), columns=len(found), sharey=True)
    for panel, (pattern, each) in zip(picture.panels, found.items(), strict=True):
        mine = of(each, STATISTICS[1], WIDTHS_S[0])
        measured = [one.measured_s for one in mine]
        for estimate, marker in zip(ESTIMATES, "x+", strict=True):
            ratio = [one.predicted_s[estimate] / one.measured_s for one in mine]
            panel.plot(measured, ratio, marker, label=estimate)
        panel.axhspan(0.97, 1.03, color="grey", alpha=0.2)
        panel.set(title=f"arrivals: {pattern}", xlabel="measured worst latency, s")
    picture.panels[0].set_ylabel("predicted / measured")
    return picture.save("mace-nodes")

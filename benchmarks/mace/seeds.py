"""One seed of `mace-operators` and `mace-nodes`: several queries, each with visits of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.frame import Claim, Result
from benchmarks.mace.exact import exact
from benchmarks.mace.judge import WIDTHS_S, Judged, judge, of, span_of, tell, worst_of
from benchmarks.mace.load import parts, patterns_s
from benchmarks.mace.trial import (
    SAMPLE,
    first_statistics,
    queries_of,
    simulate,
    spread_statistics,
)

MOST_QUERIES = 5
STATISTICS = ("first 8 %", "spread 8 %", "exact loads")


def one_seed(
    seed: int, *, queries: int, nodes: int = 1, is_one_pattern: bool = False
) -> list[Judged]:
    """Draw arrivals, costs and a placement; return each prediction beside the measurement."""
    rng = np.random.default_rng([seed, queries, nodes])
    arrivals_s = patterns_s(rng, queries=queries, is_one=is_one_pattern)
    drawn = queries_of(rng, arrivals_s, sets=parts(MOST_QUERIES)[:queries], nodes=nodes)
    measured = simulate(drawn, seed=seed)
    graphs = {
        name: statistics(drawn, SAMPLE, seed=seed)
        for name, statistics in zip(STATISTICS, (first_statistics, spread_statistics), strict=False)
    }
    known = [worst_of(measured, exact(drawn, width_s), STATISTICS[-1]) for width_s in WIDTHS_S]
    return judge(drawn, measured, graphs) + known


def tell_all(
    result: Result,
    head: object,
    label: str,
    found: Sequence[Judged],
    claimed: Callable[[str, list[Judged]], list[Claim]],
) -> None:
    """Add rows, figures and claims for each width and each kind of statistics.

    Args:
        result: to be added to.
        head: first cell of the rows.
        label: what figures and claims begin with.
        found: of all seeds.
        claimed: (what it is of, those that count) -> claims; not asked about exact loads, which no
            prediction has.
    """
    for width_s in WIDTHS_S:
        for statistics in STATISTICS:
            mine = of(found, statistics, width_s)
            what = f"{label}, {statistics}, w {width_s:g} s"
            tell(result, [head, span_of(mine), statistics, width_s], mine, key=what)
            if statistics != STATISTICS[-1]:
                result.claims += claimed(what, mine)

"""[mace] Fig. 7: 14 to 70 operators on one node, one to five queries.

Each query has visits of hosts of its own and an arrival pattern of its own; all together have 75k
events and a load of 0.7. Statistics are of 8 % of the events.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.frame import Options, Result
from benchmarks.mace.judge import HEADER, WIDTHS_S, Judged, claims, of, seeds_of
from benchmarks.mace.load import EVENTS
from benchmarks.mace.query import STAGES
from benchmarks.mace.seeds import MOST_QUERIES, STATISTICS, one_seed, tell_all
from benchmarks.picture import Picture
from benchmarks.side_by_side import crossed

QUICK_QUERIES = (3,)
MEDIAN = 0.04
PAPER = "[mace] Fig. 7: close for 14 to 70 operators (within 4 % in the text of §VIII)"


def run(options: Options) -> Result:
    """Predict each number of queries' worst latency, and measure it."""
    seeds = seeds_of(options)
    sizes = QUICK_QUERIES if options.quick else tuple(range(1, MOST_QUERIES + 1))
    result = Result(
        f"{EVENTS:,} events, one node, {len(seeds)} seeds of each size; simulated",
        ["operators", "measured", "statistics", "w, s", "estimate", "seeds", *HEADER],
    )
    runs = crossed(
        sizes, seeds, lambda size, seed: one_seed(seed, queries=size), what="mace-operators"
    )
    found = {size: [one for judged in each for one in judged] for size, each in runs.items()}
    for size, each in found.items():
        operators = size * len(STAGES)
        of_mace = partial(claims, estimate="Mace", median=MEDIAN)
        tell_all(result, operators, f"{operators} operators", each, of_mace)
    result.notes += [PAPER, f"drawn: {draw(found)}"]
    return result


def draw(found: dict[int, list[Judged]]) -> Path:
    """Draw measured and predicted worst latencies; return the path of the picture."""
    picture = Picture("mace-operators: Mace with w = 1 s, each dot a seed", (8.0, 4.5))
    (panel,) = picture.panels
    colours = ("tab:red", "tab:blue", "tab:green")
    for statistics, colour, shift in zip(STATISTICS, colours, (-1.5, 0.0, 1.5), strict=True):
        for size, each in found.items():
            mine = of(each, statistics, WIDTHS_S[0])
            ratio = [one.predicted_s["Mace"] / one.measured_s for one in mine]
            at = np.full(len(ratio), size * len(STAGES) + shift)
            label = statistics if size == min(found) else None
            panel.plot(at, ratio, ".", color=colour, label=label)
    panel.axhspan(0.96, 1.04, color="grey", alpha=0.2)
    panel.set_xticks([size * len(STAGES) for size in found])
    panel.set(xlabel="operators on one node", ylabel="predicted / measured worst latency")
    return picture.save("mace-operators")

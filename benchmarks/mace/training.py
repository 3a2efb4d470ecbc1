"""[mace] Fig. 4: the worst latency predicted from more and more of 75k events.

One query of 14 operators on one node, 20 seeds: of the costs, and of when events arrive. Statistics
are of the first events; or, for the data drifts, of as many from all over it. Arrivals are known in
advance. Besides, predictions from the exact load of each subinterval: what is then still off is
the model's, the scheduler's or the subinterval's part.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.frame import Options, Result
from benchmarks.mace.exact import exact
from benchmarks.mace.judge import (
    HEADER,
    WIDTHS_S,
    Judged,
    claims,
    judge,
    of,
    seeds_of,
    span_of,
    tell,
    worst_of,
)
from benchmarks.mace.load import EVENTS, patterns_s
from benchmarks.mace.trial import (
    SAMPLE,
    first_statistics,
    queries_of,
    simulate,
    spread_statistics,
)
from benchmarks.picture import Picture
from benchmarks.side_by_side import side_by_side

SHARES = (0.005, 0.02, 0.04, 0.08, 0.16, 0.32, 1.0)
QUICK_SHARES = (0.02, 0.08)
MEDIAN = 0.03
PAPER = "[mace] Fig. 4: below 3 % from 6k of 75k events (8 %) on, w = 1 s, one arrival pattern"
SAMPLES = {"first": first_statistics, "spread": spread_statistics}


def run(options: Options) -> Result:
    """Predict each seed's worst latency from samples of each size."""
    seeds = seeds_of(options)
    shares = QUICK_SHARES if options.quick else SHARES
    result = Result(
        f"{EVENTS:,} events, one query on one node, {len(seeds)} seeds; simulated",
        ["statistics of", "w, s", "estimate", "seeds", *HEADER],
    )
    tasks = [partial(one_seed, seed, shares) for seed in seeds]
    found = [one for each in side_by_side(tasks, what="mace-training") for one in each]
    names = _drawn(shares)
    for width_s in WIDTHS_S:
        for how, share in names:
            mine = of(found, _name(how, share), width_s)
            tell(
                result,
                [_name(how, share), width_s],
                mine,
                key=f"{_name(how, share)}, w {width_s:g}",
            )
        tell(
            result,
            ["exact loads", width_s],
            of(found, "exact", width_s),
            key=f"exact, w {width_s:g}",
        )
        for how, share in names:
            if share >= SAMPLE:
                what = f"{_name(how, share)}, w {width_s:g} s"
                mine = of(found, _name(how, share), width_s)
                result.claims += claims(what, mine, "Mace", median=MEDIAN)
    result.notes += [f"measured: {span_of(of(found, 'exact', 1.0))}", PAPER]
    result.notes.append(f"drawn: {draw(found, shares)}")
    return result


def one_seed(seed: int, shares: tuple[float, ...]) -> list[Judged]:
    """Return each prediction for one seed."""
    rng = np.random.default_rng(seed)
    queries = queries_of(rng, patterns_s(rng, queries=1), sets=[None])
    measured = simulate(queries, seed=seed)
    graphs = {
        _name(how, share): SAMPLES[how](queries, share, seed=seed) for how, share in _drawn(shares)
    }
    by_exact = [worst_of(measured, exact(queries, width_s), "exact") for width_s in WIDTHS_S]
    return judge(queries, measured, graphs) + by_exact


def _drawn(shares: tuple[float, ...]) -> list[tuple[str, float]]:
    """Return which samples are taken: of all events there is but one."""
    return [(how, share) for how in SAMPLES for share in shares if share < 1 or how == "first"]


def _name(how: str, share: float) -> str:
    return f"{how} {100 * share:g} %"


def draw(found: list[Judged], shares: tuple[float, ...]) -> Path:
    """Draw the error over the size of the sample; return the path of the picture."""
    picture = Picture("mace-training: Mace's error, median and range of the seeds", (8.0, 4.5))
    (panel,) = picture.panels
    for how, colour in zip(SAMPLES, ("tab:red", "tab:blue"), strict=True):
        drawn = [share for one, share in _drawn(shares) if one == how]
        percent = [100 * share for share in drawn]
        for width_s, style in zip(WIDTHS_S, ("-", "--"), strict=True):
            errors = [
                [100 * one.error("Mace") for one in of(found, _name(how, share), width_s)]
                for share in drawn
            ]
            medians = [float(np.median(each)) for each in errors]
            label = f"{how} events, w = {width_s:g} s"
            panel.plot(percent, medians, style, color=colour, marker="o", label=label)
            if width_s == WIDTHS_S[0]:
                low, high = [min(e) for e in errors], [max(e) for e in errors]
                panel.fill_between(percent, low, high, color=colour, alpha=0.12)
    panel.axhline(3, color="grey", linewidth=0.8)
    panel.set(xscale="log", ylabel="error of the worst latency, %")
    panel.set_xlabel("share of the events that statistics are taken from, %")
    return picture.save("mace-training")

"""What an error of the load makes of a backlog: why `mace-operators` is off, without running it.

The queries of `mace-operators` on one node. Each is predicted from its exact load, and from what
is known of the shares of visits that its filters let go; all else is exact. What differs is the
statistics' fault, and neither the model's nor the scheduler's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from benchmarks.frame import Claim, Options, Result, number
from benchmarks.mace.drifting import steadied
from benchmarks.mace.exact import Kept, loads_of
from benchmarks.mace.judge import WORST, seeds_of
from benchmarks.mace.load import EVENTS, Floats, Ints, parts, patterns_s
from benchmarks.mace.operators import MEDIAN
from benchmarks.mace.query import STAGES, Bools
from benchmarks.mace.seeds import MOST_QUERIES
from benchmarks.mace.trial import SAMPLE, Queries, one_of_each, queries_of, stretch_rows
from benchmarks.side_by_side import side_by_side
from slackwater.runtime.foresight.excess import cumulative_excess, mace

SIZES, QUICK_SIZES = (2, 3, 4, 5), (5,)
QUICK_SEEDS = 4
WIDTH_S = 0.1
BY_STRETCH = "8 %, shares by stretches"
Known = Callable[[np.random.Generator], Kept]


def run(options: Options) -> Result:
    """Predict each seed from what may be known of its load."""
    seeds = range(options.seed, options.seed + QUICK_SEEDS) if options.quick else seeds_of(options)
    sizes = QUICK_SIZES if options.quick else SIZES
    result = Result(
        f"{EVENTS:,} events, one node, {len(seeds)} seeds of each size, w = {WIDTH_S:g} s; "
        "nothing is run",
        ["operators", "worst latency, s", "known of shares", "median error", "worst"],
    )
    runs = [(size, seed) for size in sizes for seed in seeds]
    found: dict[tuple[int, str], list[float]] = {}
    worst_s: dict[int, list[float]] = {}
    tasks = [partial(one_seed, seed, size) for size, seed in runs]
    each_run = side_by_side(tasks, what="mace-drift")
    for (size, _), (known_s, errors) in zip(runs, each_run, strict=True):
        worst_s.setdefault(size, []).append(known_s)
        for name, error in errors.items():
            found.setdefault((size, name), []).append(error)
    for (size, name), errors_of in found.items():
        operators = size * len(STAGES)
        each = [abs(error) for error in errors_of]
        span = f"{number(min(worst_s[size]))}–{number(max(worst_s[size]))}"
        median, worst = float(np.median(each)), max(each)
        result.rows.append([operators, span, name, f"{100 * median:.1f} %", f"{100 * worst:.1f} %"])
        result.figures[f"{operators} operators, {name}"] = [round(one, 4) for one in errors_of]
        if name == BY_STRETCH:
            what = f"{operators} operators, {name}"
            result.claims += [
                Claim(f"{what}: median error of {len(each)}", median, "<=", MEDIAN),
                Claim(f"{what}: worst error of {len(each)}", worst, "<=", WORST),
            ]
    result.notes.append("errors are against the prediction from exact loads, of the worst latency")
    return result


def one_seed(seed: int, size: int) -> tuple[float, Mapping[str, float]]:
    """Return the worst latency by exact loads, seconds, and {what is known: error}."""
    rng = np.random.default_rng([seed, size, 1])
    queries = queries_of(rng, patterns_s(rng, queries=size), sets=parts(MOST_QUERIES)[:size])
    exact_s = _worst_s(queries, _as_they_were)
    known: dict[str, Known] = {
        "all, one share": _one_share,
        "8 %, one share": _sampled_share,
        BY_STRETCH: _by_stretch,
    }
    errors = {
        name: _worst_s(queries, kept(np.random.default_rng([seed, 8]))) / exact_s - 1
        for name, kept in known.items()
    }
    return exact_s, errors


def _worst_s(queries: Queries, kept: Kept) -> float:
    _, work = loads_of(queries, WIDTH_S, kept)
    latency_s = mace(cumulative_excess(work.load_s.sum(axis=0)[None, :], 1.0, width_s=WIDTH_S), 1.0)
    return float(latency_s[: int(queries.ended_s / WIDTH_S)].max())


def _as_they_were(stays: Bools) -> Floats:
    return stays.astype(np.float64)


def _one_share(rng: np.random.Generator) -> Kept:
    del rng
    return lambda stays: np.full(len(stays), stays.mean())


def _sampled_share(rng: np.random.Generator) -> Kept:
    return lambda stays: np.full(len(stays), stays[_places(rng, stays)].mean())


def _by_stretch(rng: np.random.Generator) -> Kept:
    def kept(stays: Bools) -> Floats:
        places = _places(rng, stays)
        rows = stretch_rows(len(places))
        in_each = np.diff(np.append(rows, len(places))).astype(np.float64)
        stayed = np.add.reduceat(stays[places].astype(np.float64), rows)
        stretch = np.searchsorted(places[rows], np.arange(len(stays)), side="right") - 1
        return np.asarray(steadied(in_each, stayed)[np.maximum(stretch, 0)])

    return kept


def _places(rng: np.random.Generator, stays: Bools) -> Ints:
    return one_of_each(rng, round(SAMPLE * len(stays)), of=len(stays))

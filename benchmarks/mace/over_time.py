"""[mace] Fig. 5 and 6: Mace and measured latency over time, in three chunks of the visits.

One query on one node; each third of 75k events has an arrival pattern of its own. Statistics are of
the first third only. Once more with the data's own arrivals, replayed faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.frame import Options, Result
from benchmarks.mace.exact import exact
from benchmarks.mace.judge import (
    BACKLOG,
    HEADER,
    WIDTHS_S,
    Judged,
    claims,
    of,
    seeds_of,
    tell,
    worst_of,
)
from benchmarks.mace.load import EVENTS, Floats, on_off_s, own_s
from benchmarks.mace.trial import (
    Measured,
    Queries,
    first_statistics,
    predict,
    queries_of,
    simulate,
    spread_statistics,
)
from benchmarks.picture import Picture
from benchmarks.side_by_side import side_by_side
from slackwater.runtime.foresight import LatencyEstimate

CHUNKS = 3
MEDIAN = 0.04
OWN_RATE = 257.0
"""Events a second that the data's own arrivals are replayed at: the mean of the on-off load."""
STATISTICS = ("first chunk", "spread 8 %", "exact loads")
PAPER = "[mace] Fig. 5, 6: within 4 % in each of three chunks; statistics of the first"


@dataclass(frozen=True, eq=False)
class OneRun:
    """What ran, and what was said of it before: {(statistics, w): estimate}."""

    measured: Measured
    ends_s: Sequence[float]
    estimates: dict[tuple[str, float], LatencyEstimate]


def run(options: Options) -> Result:
    """Predict and measure each seed, chunk by chunk."""
    seeds = seeds_of(options)
    result = Result(
        f"{EVENTS:,} events in three chunks, one query on one node, {len(seeds)} seeds; simulated",
        ["chunk", "statistics", "w, s", "estimate", "seeds", *HEADER],
    )
    found: dict[int, list[Judged]] = {chunk: [] for chunk in range(1, CHUNKS + 1)}
    within: dict[tuple[str, float], list[float]] = {}
    drawn = _chunked(seeds[0])
    shown = [("on-off arrivals", drawn)]
    tasks = [partial(_judged, drawn), *(partial(_judged_of, seed) for seed in seeds[1:])]
    for judged, errors in side_by_side(tasks, what="mace-time"):
        for chunk, one in judged:
            found[chunk].append(one)
        for key, error in errors.items():
            within.setdefault(key, []).append(error)
    for chunk, each in found.items():
        for width_s in WIDTHS_S:
            for name in STATISTICS:
                mine = of(each, name, width_s)
                what = f"chunk {chunk}, {name}, w {width_s:g} s"
                tell(result, [chunk, name, width_s], mine, key=what)
                if name != STATISTICS[-1]:
                    result.claims += claims(what, mine, "Mace", median=MEDIAN)
    if not options.quick:
        own = one_run(options.seed, own_s(EVENTS, mean_rate=OWN_RATE))
        shown.append(("the data's own arrivals", own))
        for (name, width_s), estimate in own.estimates.items():
            mine = of([worst_of(own.measured, estimate, name)], name, width_s)
            tell(result, ["own arrivals", name, width_s], mine, key=f"own, {name}, w {width_s:g} s")
    result.notes += [
        f"subintervals of at least {BACKLOG} w, {name}, w {width_s:g} s: median error "
        f"{100 * np.nanmedian(errors):.1f} %"
        for (name, width_s), errors in within.items()
    ]
    result.notes += [PAPER, f"drawn: {draw(shown)}"]
    return result


def _chunked(seed: int) -> OneRun:
    return one_run(seed, chunks_s(np.random.default_rng([seed, 1])))


def _judged_of(seed: int) -> tuple[list[tuple[int, Judged]], dict[tuple[str, float], float]]:
    return _judged(_chunked(seed))


def _judged(one: OneRun) -> tuple[list[tuple[int, Judged]], dict[tuple[str, float], float]]:
    """Return each chunk's worst latency beside each prediction, and the errors within the run."""
    judged = [
        (chunk, worst_of(one.measured, estimate, name, between_s=between_s))
        for (name, _), estimate in one.estimates.items()
        for chunk, between_s in enumerate(zip((0.0, *one.ends_s), one.ends_s, strict=False), 1)
    ]
    within = {key: _error_within(one.measured, each) for key, each in one.estimates.items()}
    return judged, within


def chunks_s(rng: np.random.Generator) -> Floats:
    """Return arrivals of three patterns, one after the other."""
    count, parts, now_s = EVENTS // CHUNKS, [], 0.0
    for _ in range(CHUNKS):
        at_s = on_off_s(rng, count)
        parts.append(now_s + at_s)
        now_s += float(at_s[-1]) + 1.0
    return np.concatenate(parts)


def one_run(seed: int, arrivals_s: Floats) -> OneRun:
    """Run and predict one seed."""
    queries = queries_of(np.random.default_rng(seed), [arrivals_s], sets=[None])
    measured = simulate(queries, seed=seed)
    graphs = {
        STATISTICS[0]: first_statistics(queries, 1 / CHUNKS, seed=seed),
        STATISTICS[1]: spread_statistics(queries, 0.08, seed=seed),
    }
    estimates = {
        (name, width_s): predict(queries, graph, width_s=width_s)
        for name, graph in graphs.items()
        for width_s in WIDTHS_S
    }
    estimates |= {(STATISTICS[2], width_s): exact(queries, width_s) for width_s in WIDTHS_S}
    return OneRun(measured, _ends_s(queries), estimates)


def _ends_s(queries: Queries) -> list[float]:
    arrivals_s = queries.arrivals_s[0]
    count = len(arrivals_s) // CHUNKS
    return [float(arrivals_s[chunk * count - 1]) for chunk in range(1, CHUNKS)] + [float("inf")]


def _error_within(measured: Measured, estimate: LatencyEstimate) -> float:
    """Return the median error of the subintervals that have a backlog."""
    lat_s = measured.by_subinterval(estimate.width_s, len(estimate.mace_s))
    counts = np.nan_to_num(lat_s) >= BACKLOG * estimate.width_s
    errors = np.abs(estimate.mace_s[counts] - lat_s[counts]) / lat_s[counts]
    return float(np.median(errors)) if counts.any() else float("nan")


def draw(shown: list[tuple[str, OneRun]]) -> Path:
    """Draw latency and Mace over stimulus time; return the path of the picture."""
    title = "mace-time: predicted and measured latency, w = 1 s"
    picture = Picture(title, (11.0, 7.0), rows=len(shown))
    for panel, (of_panel, one) in zip(picture.panels, shown, strict=True):
        measured, estimate = one.measured, one.estimates[STATISTICS[0], WIDTHS_S[0]]
        dots = {"color": "0.6", "markersize": 2, "label": "results"}
        panel.plot(measured.stimulus_s, measured.latency_s, ".", **dots)
        begins_s = np.arange(len(estimate.mace_s)) * estimate.width_s
        panel.step(begins_s, estimate.mace_s, where="post", label="Mace, statistics of the first")
        for end_s in one.ends_s[:-1]:
            panel.axvline(end_s, color="black", linewidth=0.8, linestyle=":")
        panel.set(title=of_panel, ylabel="latency, s")
    picture.panels[-1].set_xlabel("stimulus time, s (simulated); dotted: where a chunk ends")
    return picture.save("mace-time")

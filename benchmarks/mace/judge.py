"""How far predictions of `mace-*` are off, in the paper's measure and as q-errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.frame import Claim, Options, Result, number
from benchmarks.mace.load import Floats
from benchmarks.mace.trial import Measured, Queries, predict
from slackwater.runtime.foresight import LatencyEstimate, QueryGraph

WIDTHS_S = (1.0, 0.1)
BACKLOG = 5
"""A worst latency of fewer subintervals than this is none to be predicted."""
WORST = 0.08
ESTIMATES = ("Mace", "held up")
SEEDS, QUICK_SEEDS = 20, 1


def seeds_of(options: Options) -> range:
    """Return the seeds of a run, 20 from its first; one if quick."""
    return options.seeds(SEEDS, QUICK_SEEDS)


@dataclass(frozen=True)
class Judged:
    """A worst latency as it was, and as it was predicted; seconds."""

    width_s: float
    statistics: str
    measured_s: float
    predicted_s: Mapping[str, float]  # {"Mace" or "held up": its prediction}

    def error(self, estimate: str) -> float:
        """Return |predicted − measured| / measured."""
        return abs(self.predicted_s[estimate] - self.measured_s) / self.measured_s

    def q_error(self, estimate: str) -> float:
        """Return max(predicted / measured, measured / predicted)."""
        ratio = max(self.predicted_s[estimate], 1e-9) / self.measured_s
        return max(ratio, 1 / ratio)

    @property
    def counts(self) -> bool:
        """Whether there was a backlog to be predicted."""
        return self.measured_s >= BACKLOG * self.width_s


def worst_of(
    measured: Measured,
    estimate: LatencyEstimate,
    statistics: str,
    *,
    between_s: tuple[float, float] = (0.0, float("inf")),
) -> Judged:
    """Return the worst of the results whose stimulus is within some time, beside its prediction.

    Predictions count where there is output: [mace] has no latency elsewhere.
    """
    width_s = estimate.width_s
    begins_s = np.arange(len(estimate.mace_s)) * width_s
    within = (begins_s >= between_s[0]) & (begins_s < between_s[1])
    lat_s = measured.by_subinterval(width_s, len(begins_s))[within]
    has = within.copy()
    has[within] = ~np.isnan(lat_s)
    return Judged(
        width_s,
        statistics,
        float(np.nanmax(lat_s)),
        {
            "Mace": float(estimate.mace_s[has].max()),
            "held up": float(estimate.held_up_s[has].max()),
        },
    )


def judge(queries: Queries, measured: Measured, graphs: Mapping[str, QueryGraph]) -> list[Judged]:
    """Return the worst latency beside each prediction; {statistics: what they show}."""
    return [
        worst_of(measured, predict(queries, graph, width_s=width_s), name)
        for name, graph in graphs.items()
        for width_s in WIDTHS_S
    ]


def of(found: Sequence[Judged], statistics: str, width_s: float) -> list[Judged]:
    """Return those of some statistics and width that count."""
    return [
        one
        for one in found
        if one.statistics == statistics and one.width_s == width_s and one.counts
    ]


def told(found: Sequence[Judged], estimate: str) -> list[str]:
    """Return cells: median error, worst error, median and worst q-error."""
    if not found:
        return ["–"] * 3
    errors: Floats = np.array([one.error(estimate) for one in found])
    q = np.array([one.q_error(estimate) for one in found])
    return [
        f"{100 * np.median(errors):.1f} %",
        f"{100 * errors.max():.1f} %",
        f"{np.median(q):.3f}, {q.max():.3f}",
    ]


HEADER = ("median error", "worst", "q-error: median, worst")


def claims(
    what: str, found: Sequence[Judged], estimate: str, *, median: float, worst: float = WORST
) -> list[Claim]:
    """Return what is claimed of these."""
    if not found:
        return []
    errors = [one.error(estimate) for one in found]
    name = f"{what}, {estimate}"
    return [
        Claim(f"{name}: median error of {len(errors)}", float(np.median(errors)), "<=", median),
        Claim(f"{name}: worst error of {len(errors)}", max(errors), "<=", worst),
    ]


def figures(found: Sequence[Judged], estimate: str) -> dict[str, object]:
    """Return what was found, as plain values."""
    return {
        "errors": [round(one.error(estimate), 4) for one in found],
        "q_errors": [round(one.q_error(estimate), 4) for one in found],
        "measured_s": [round(one.measured_s, 3) for one in found],
    }


def tell(result: Result, what: Sequence[object], found: Sequence[Judged], *, key: str) -> None:
    """Add a row of the table for both estimates, and the figures."""
    for estimate in ESTIMATES:
        result.rows.append([*what, estimate, len(found), *told(found, estimate)])
        result.figures[f"{key}, {estimate}"] = figures(found, estimate)


def span_of(found: Sequence[Judged]) -> str:
    """Return what was measured, from least to most."""
    measured = [one.measured_s for one in found]
    return f"{number(min(measured))}–{number(max(measured))} s" if measured else "–"

"""How far predictions were off what the sinks of a job on Ray have measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.mace.exact import exact
from benchmarks.mace.judge import BACKLOG, Judged
from benchmarks.mace.load import Floats
from benchmarks.mace.on_ray.trial import OnRay, with_costs
from benchmarks.mace.trial import (
    SAMPLE,
    Queries,
    first_statistics,
    predict,
    spread_statistics,
)
from slackwater.runtime.foresight import LatencyEstimate

FIRST, SPREAD, EXACT = "first", "spread", "exact loads"
SAMPLES = {FIRST: first_statistics, SPREAD: spread_statistics}


def estimates_of(
    queries: Queries, shares: Sequence[float], *, width_s: float, seed: int
) -> dict[str, LatencyEstimate]:
    """Return what was to be expected, of a sample of each share, and of exact loads: {name: …}.

    Costs are those that were set. Statistics are those of a sample; nothing is run on the nodes.
    Of samples above 8 % there are only the first events.
    """
    found = {
        named(how, share): predict(
            queries,
            with_costs(sample(queries, share, seed=seed), queries.costs_ns),
            width_s=width_s,
        )
        for how, sample in SAMPLES.items()
        for share in shares
        if how == FIRST or share <= SAMPLE
    }
    return found | {EXACT: exact(queries, width_s)}


def named(how: str, share: float) -> str:
    """Return what predictions from a sample are called."""
    return f"{how} {100 * share:.3g} %"


def judged(
    run: OnRay,
    estimate: LatencyEstimate,
    statistics: str,
    *,
    between_s: tuple[float, float] = (0.0, float("inf")),
) -> Judged:
    """Return the worst latency of some time beside what was predicted, where there was output."""
    bins = (run.begins_s + run.width_s > between_s[0]) & (run.begins_s < between_s[1])
    within = [_within(estimate, run, begins_s) for begins_s in run.begins_s[bins]]
    has = np.any(within, axis=0)
    return Judged(
        estimate.width_s,
        statistics,
        float(run.worst_s[bins].max()),
        {
            "Mace": float(estimate.mace_s[has].max()),
            "held up": float(estimate.held_up_s[has].max()),
        },
    )


def by_second(run: OnRay, estimate: LatencyEstimate) -> Floats:
    """Return what was predicted for each bin of a run, work held up counted; NaN behind the end."""
    latency_s: Floats = estimate.held_up_s
    masks = [_within(estimate, run, begins_s) for begins_s in run.begins_s]
    return np.array([latency_s[mask].max() if mask.any() else np.nan for mask in masks])


def error_by_second(run: OnRay, estimate: LatencyEstimate) -> float:
    """Return the median error of the seconds with a backlog."""
    counts = run.worst_s >= BACKLOG * estimate.width_s
    errors = np.abs(by_second(run, estimate) - run.worst_s)[counts] / run.worst_s[counts]
    return float(np.nanmedian(errors)) if counts.any() else float("nan")


def thirds_s(run: OnRay) -> Mapping[int, tuple[float, float]]:
    """Return {chunk: from when until when}, three of one length."""
    end_s = float(run.begins_s[-1] + run.width_s)
    return {chunk: ((chunk - 1) * end_s / 3, chunk * end_s / 3) for chunk in (1, 2, 3)}


def _within(estimate: LatencyEstimate, run: OnRay, begins_s: float) -> np.ndarray:
    """Return which subintervals have their middle in the bin that begins then: a mask, (d,)."""
    middle_s = (np.arange(len(estimate.mace_s)) + 0.5) * estimate.width_s
    mask: np.ndarray = (middle_s >= begins_s) & (middle_s < begins_s + run.width_s)
    return mask

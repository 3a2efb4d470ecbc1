"""Many runs of all policies, and what is told of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks.frame import Result
from benchmarks.probslack.panels import Found
from benchmarks.probslack.streams import Stream, generated
from benchmarks.probslack.trial import Outcome, all_tried, range_of, windows_of
from benchmarks.side_by_side import side_by_side

HEADER = ["policy", "MER, %", "highest MER, %", "mean slack, ms"]


def swept(
    settings: Sequence[tuple[str, float, float]], seeds: Sequence[int], *, what: str
) -> dict[tuple[str, float, float], Found]:
    """Return what each policy comes to, seed by seed.

    Args:
        settings: (distributions, f in ms, δ).
        seeds: of the streams.
        what: the benchmark's name, for who waits.
    """
    tasks = [
        partial(_one, partial(generated, name), seed, frequency_ms, miss)
        for name, frequency_ms, miss in settings
        for seed in seeds
    ]
    all_found = side_by_side(tasks, what=what)
    found: dict[tuple[str, float, float], Mapping[str, Sequence[Outcome]]] = {}
    for number, setting in enumerate(settings):
        runs = all_found[number * len(seeds) : (number + 1) * len(seeds)]
        found[setting] = {policy: [run[policy] for run in runs] for policy in runs[0]}
    return found


def _one(
    make: Callable[[int], Stream], seed: int, frequency_ms: float, miss: float
) -> dict[str, Outcome]:
    return all_tried(make(seed), windows_of(frequency_ms), miss)


def tell(result: Result, label: Sequence[object], key: str, found: Found) -> None:
    """Add a row for each policy to the table, and its figures."""
    for policy, runs in found.items():
        mer = range_of(100 * run.mer for run in runs)
        worst = max(100 * run.worst_mer for run in runs)
        slack = range_of(run.slack_ms for run in runs)
        result.rows.append([*label, policy, mer, f"{worst:.2f}", slack])
        result.figures[f"{key}, {policy}"] = {
            "mer_percent": mer.to_json(),
            "highest_mer_percent": worst,
            "slack_ms": slack.to_json(),
        }


def mean_gain_ms(found: Sequence[Found], policy: str) -> float:
    """Return by how much the mean slack of a policy is below event-driven's, over all runs."""
    both = [
        range_of(run.slack_ms for one in found for run in one[name]).mean
        for name in ("event-driven", policy)
    ]
    return both[0] - both[1]


def worst_share(found: Sequence[tuple[float, Found]], policy: str = "ProbSlack") -> float:
    """Return the highest MER of all runs at any time, by its δ: at most 1 where each keeps it."""
    return max(run.worst_mer / miss for miss, one in found for run in one[policy])


def oracle_ratio(found: Found, policy: str = "ProbSlack") -> float:
    """Return the oracle's gain by a policy's."""
    return mean_gain_ms([found], "oracle") / mean_gain_ms([found], policy)


def closed_percent(found: Found) -> float:
    """Return how much of the way from ProbSlack to the oracle the extensions go."""
    ours = mean_gain_ms([found], "ProbSlack")
    way = mean_gain_ms([found], "oracle") - ours
    return 100 * (mean_gain_ms([found], "extended") - ours) / way

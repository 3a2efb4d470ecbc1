"""Many runs of all policies, and what is told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from benchmarks.frame import Result
from benchmarks.probslack.streams import generated
from benchmarks.probslack.trial import (
    Outcome,
    Range,
    all_tried,
    extensions,
    paper,
    range_of,
    simple_policies,
    windows_of,
)
from benchmarks.side_by_side import crossed
from slackwater.runtime.closing.policy import Closing

Found = Mapping[str, Sequence[Outcome]]
"""{policy: of each run}"""
Setting = tuple[str, float, float]
"""Distributions, f in ms, δ."""

HEADER = (
    "event-driven: ms",
    "ignore: MER, %",
    "mean delay: MER, %",
    "ms",
    "ProbSlack: MER, %",
    "highest",
    "ms",
    "extended: MER, %",
    "ms",
    "oracle: ms",
    "its gain by ours",
    "paper",
)
ALONE = ("+ early fit", "+ sliding fit", "+ fitted ε")


def all_policies(miss: float, *, alone: bool = True) -> dict[str, Closing]:
    """Return the policies of §4.1 but the oracle, and ours; alone: each extension by itself too."""
    ours = extensions(miss)
    left = ours if alone else {"extended": ours["extended"]}
    return {**simple_policies(), "ProbSlack": paper(miss), **left}


def swept(
    settings: Sequence[Setting], seeds: Sequence[int], *, what: str, alone: bool
) -> dict[Setting, Found]:
    """Return what each policy comes to, seed by seed.

    Args:
        settings: which.
        seeds: of the streams.
        what: the benchmark's name, for who waits.
        alone: whether each extension is tried by itself as well.
    """
    runs = crossed(settings, seeds, partial(_one, alone=alone), what=what)
    return {setting: by_policy(each) for setting, each in runs.items()}


def by_policy(runs: Sequence[Mapping[str, Outcome]]) -> Found:
    """Return {policy: its outcome of each run}."""
    return {policy: [run[policy] for run in runs] for policy in runs[0]}


def _one(setting: Setting, seed: int, *, alone: bool) -> dict[str, Outcome]:
    name, frequency_ms, miss = setting
    stream = generated(name, seed)
    return all_tried(all_policies(miss, alone=alone), stream, windows_of(frequency_ms), miss)


def pooled(found: Sequence[Found]) -> Found:
    """Return the runs of several settings as those of one."""
    return {policy: [run for one in found for run in one[policy]] for policy in found[0]}


def tell(result: Result, label: str, found: Found, *, paper: str = "") -> None:
    """Add a row to the table, and all its figures with their spread."""
    slack = {policy: slack_of(found, policy) for policy in found}
    mer = {policy: range_of(100 * run.mer for run in runs) for policy, runs in found.items()}
    worst = {policy: max(100 * run.worst_mer for run in runs) for policy, runs in found.items()}
    result.rows.append(
        [
            label,
            slack["event-driven"],
            f"{mer['ignore'].mean:.1f}",
            f"{mer['mean delay'].mean:.1f}",
            f"{slack['mean delay'].mean:.1f}",
            mer["ProbSlack"],
            f"{worst['ProbSlack']:.2f}",
            slack["ProbSlack"],
            f"{mer['extended'].mean:.1f}",
            slack["extended"],
            slack["oracle"],
            f"{oracle_ratio(found):.2f}",
            paper,
        ]
    )
    for policy in found:
        result.figures[f"{label}, {policy}"] = {
            "mer_percent": mer[policy].to_json(),
            "highest_mer_percent": worst[policy],
            "slack_ms": slack[policy].to_json(),
        }


def slack_of(found: Found, policy: str) -> Range:
    """Return the mean slack of a policy over its runs, ms."""
    return range_of(run.slack_ms for run in found[policy])


def gain_ms(found: Found, policy: str = "ProbSlack") -> float:
    """Return by how much the mean slack of a policy is below event-driven's, over all runs."""
    return slack_of(found, "event-driven").mean - slack_of(found, policy).mean


def worst_share(found: Sequence[tuple[float, Found]], policy: str = "ProbSlack") -> float:
    """Return the highest MER of all runs at any time, by its δ: at most 1 where each keeps it."""
    return max(run.worst_mer / miss for miss, one in found for run in one[policy])


def oracle_ratio(found: Found, policy: str = "ProbSlack") -> float:
    """Return the oracle's gain by a policy's."""
    return gain_ms(found, "oracle") / gain_ms(found, policy)


def closed_percent(found: Found, policy: str) -> float:
    """Return how much of the way from ProbSlack to the oracle an extension goes."""
    ours = gain_ms(found)
    return 100 * (gain_ms(found, policy) - ours) / (gain_ms(found, "oracle") - ours)


def tell_what_extensions_close(result: Result, found: Mapping[str, Found]) -> None:
    """Note how much of the way to the oracle each extension goes, alone and all together.

    Args:
        result: of the benchmark.
        found: {label of a setting: what was found}.
    """
    parts = []
    for policy in (*ALONE, "extended"):
        percent = {label: closed_percent(one, policy) for label, one in found.items()}
        result.figures[f"closed_percent, {policy}"] = percent
        name = "all of it" if policy == "extended" else policy.removeprefix("+ ")
        mean = sum(percent.values()) / len(percent)
        parts.append(
            f"{name} {mean:.0f} % ({min(percent.values()):.0f}–{max(percent.values()):.0f})"
        )
    result.notes.append(
        "of the way from ProbSlack to the oracle, mean (least–most) of settings: "
        + ", ".join(parts)
    )

"""Tables of closing and shedding, for the operators that do it."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.report.tables import Column, format_count, percent
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.model import format_ns
from slackwater.runtime.shedding.counts import SheddingCounts


def closing_columns(stages: Sequence[StageReport]) -> list[Column]:
    """Return the counts of closing, for each stage whose windows close by arrivals."""
    closed = [(stage.name, stage.closing) for stage in stages if stage.closing is not None]
    promised = [
        "–" if counts.promised is None else f"at most {counts.promised:.3g}" for _, counts in closed
    ]
    return [
        ("stage", [name for name, _ in closed]),
        ("windows", [format_count(counts.windows) for _, counts in closed]),
        ("without\na row", [format_count(counts.empty) for _, counts in closed]),
        ("closed\nearly", [format_count(counts.early) for _, counts in closed]),
        ("missed\nsomething", [format_count(counts.missed) for _, counts in closed]),
        ("share", [f"{counts.missed_share:.3g}" for _, counts in closed]),
        ("promised", promised),
        ("mean slack", [format_ns(counts.mean_slack_ns) for _, counts in closed]),
    ]


def shedding_columns(stages: Sequence[StageReport]) -> list[Column]:
    """Return the counts of shedding, for each stage that sheds."""
    shed = [(stage, stage.shedding) for stage in stages if stage.shedding is not None]
    false = [counts.false_share for _, counts in shed]
    spells_ns = [sum(to - since for since, to, _ in counts.spells) for _, counts in shed]
    return [
        ("stage", [stage.name for stage, _ in shed]),
        ("bound", [format_ns(counts.latency_ns) for _, counts in shed]),
        ("slowest\nevent", [format_ns(counts.slowest_ns) for _, counts in shed]),
        ("times", [format_count(counts.starts) for _, counts in shed]),
        ("in all", [format_ns(counts) for counts in spells_ns]),
        ("events\nshed", [format_count(counts.shed) for _, counts in shed]),
        ("of events", [_share_text(counts.shed, stage.used) for stage, counts in shed]),
        ("of these not\nlooked at", [format_count(counts.passed_over) for _, counts in shed]),
        ("event, window\npairs dropped", [format_count(counts.dropped) for _, counts in shed]),
        ("of pairs", [_share_text(counts.dropped, counts.pairs) for _, counts in shed]),
        ("matches lost,\nestimated", [_lost_text(counts) for _, counts in shed]),
        ("false ones", ["–" if s is None else percent(s) for s in false]),
        ("from\nmatches", [format_count(counts.judged_matches) for _, counts in shed]),
        ("ranked by", [_ranked_text(counts) for _, counts in shed]),
    ]


def feature_text(counts: SheddingCounts) -> str | None:
    """Return whether a feature is used, and why; None if no feature was tried yet."""
    if counts.compared_lost is None:
        return None
    without, with_it = (percent(share) for share in counts.compared_lost)
    is_used = "is used" if "feature" in counts.ranked_by else "is not used"
    return (
        f"feature {counts.feature} {is_used}: of {counts.compared:,.0f} matches held against both "
        f"models {without} would have been lost without it, {with_it} with it"
    )


def _ranked_text(counts: SheddingCounts) -> str:
    # Before any drop: the features that would rank events.
    if len(counts.ranked) < 2:
        return next(iter(counts.ranked), counts.ranked_by)
    pairs = sum(counts.ranked.values())
    by_pairs = sorted(counts.ranked.items(), key=lambda item: -item[1])
    return "\n".join(f"{by}: {_share_text(some, pairs)}" for by, some in by_pairs)


def _lost_text(counts: SheddingCounts) -> str:
    if counts.lost_share is not None:
        return percent(counts.lost_share)
    most = counts.most_lost_share
    return "–" if most is None else f"at most {percent(most)}"


def _share_text(part: int, whole: int) -> str:
    return percent(part / whole) if whole else "–"

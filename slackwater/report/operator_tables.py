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
    promised = ["–" if one.promised is None else f"at most {one.promised:.3g}" for _, one in closed]
    return [
        ("stage", [name for name, _ in closed]),
        ("windows", [format_count(one.windows) for _, one in closed]),
        ("without\na row", [format_count(one.empty) for _, one in closed]),
        ("closed\nearly", [format_count(one.early) for _, one in closed]),
        ("missed\nsomething", [format_count(one.missed) for _, one in closed]),
        ("share", [f"{one.missed_share:.3g}" for _, one in closed]),
        ("promised", promised),
        ("mean slack", [format_ns(one.mean_slack_ns) for _, one in closed]),
    ]


def shedding_columns(stages: Sequence[StageReport]) -> list[Column]:
    """Return the counts of shedding, for each stage that sheds."""
    shed = [(stage, stage.shedding) for stage in stages if stage.shedding is not None]
    false = [one.false_share for _, one in shed]
    spells_ns = [sum(to - since for since, to, _ in one.spells) for _, one in shed]
    return [
        ("stage", [stage.name for stage, _ in shed]),
        ("bound", [format_ns(one.latency_ns) for _, one in shed]),
        ("slowest\nevent", [format_ns(one.slowest_ns) for _, one in shed]),
        ("times", [format_count(one.starts) for _, one in shed]),
        ("in all", [format_ns(one) for one in spells_ns]),
        ("events\nshed", [format_count(one.shed) for _, one in shed]),
        ("of events", [_share_text(one.shed, stage.used) for stage, one in shed]),
        ("of these not\nlooked at", [format_count(one.passed_over) for _, one in shed]),
        ("event, window\npairs dropped", [format_count(one.dropped) for _, one in shed]),
        ("of pairs", [_share_text(one.dropped, one.pairs) for _, one in shed]),
        ("matches lost,\nestimated", [_lost_text(one) for _, one in shed]),
        ("false ones", ["–" if s is None else percent(s) for s in false]),
        ("from\nmatches", [format_count(one.judged_matches) for _, one in shed]),
        ("ranked by", [_ranked_text(one) for _, one in shed]),
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
    by_pairs = sorted(counts.ranked.items(), key=lambda one: -one[1])
    return "\n".join(f"{by}: {_share_text(some, pairs)}" for by, some in by_pairs)


def _lost_text(counts: SheddingCounts) -> str:
    if counts.lost_share is not None:
        return percent(counts.lost_share)
    most = counts.most_lost_share
    return "–" if most is None else f"at most {percent(most)}"


def _share_text(part: int, whole: int) -> str:
    return percent(part / whole) if whole else "–"

"""Tabulate the figures of single operators."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.report.tables import Column, format_count, percent
from slackwater.runtime.measure import StageReport
from slackwater.runtime.model import format_ns
from slackwater.runtime.shedding.counts import SheddingCounts


def closing_columns(stages: Sequence[StageReport]) -> list[Column]:
    """Return the closing figures of each stage whose windows close in time."""
    closings = [(stage.name, stage.closing) for stage in stages if stage.closing is not None]
    promised = ["–" if c.promised is None else f"at most {c.promised:.3g}" for _, c in closings]
    return [
        ("stage", [name for name, _ in closings]),
        ("windows", [format_count(c.windows) for _, c in closings]),
        ("without\na row", [format_count(c.empty) for _, c in closings]),
        ("closed\nearly", [format_count(c.early) for _, c in closings]),
        ("missed\nsomething", [format_count(c.missed) for _, c in closings]),
        ("share", [f"{c.missed_share:.3g}" for _, c in closings]),
        ("promised", promised),
        ("mean slack", [format_ns(c.mean_slack_ns) for _, c in closings]),
    ]


def shedding_columns(stages: Sequence[StageReport]) -> list[Column]:
    """Return the shedding figures of each stage that sheds."""
    sheddings = [(stage, stage.shedding) for stage in stages if stage.shedding is not None]
    false = [c.false_share for _, c in sheddings]
    spells_ns = [sum(to - since for since, to, _ in c.spells) for _, c in sheddings]
    return [
        ("stage", [stage.name for stage, _ in sheddings]),
        ("bound", [format_ns(c.latency_ns) for _, c in sheddings]),
        ("slowest\nevent", [format_ns(c.slowest_ns) for _, c in sheddings]),
        ("times", [format_count(c.starts) for _, c in sheddings]),
        ("in all", [format_ns(spell_ns) for spell_ns in spells_ns]),
        ("events\nshed", [format_count(c.shed) for _, c in sheddings]),
        ("of events", [_share_text(c.shed, stage.used) for stage, c in sheddings]),
        ("of these not\nlooked at", [format_count(c.passed_over) for _, c in sheddings]),
        ("event, window\npairs dropped", [format_count(c.dropped) for _, c in sheddings]),
        ("of pairs", [_share_text(c.dropped, c.pairs) for _, c in sheddings]),
        ("matches lost,\nestimated", [_lost_text(c) for _, c in sheddings]),
        ("false ones", ["–" if s is None else percent(s) for s in false]),
        ("from\nmatches", [format_count(c.judged_matches) for _, c in sheddings]),
        ("ranked by", [_ranked_text(c) for _, c in sheddings]),
    ]


def feature_text(counts: SheddingCounts) -> str | None:
    """Return whether a feature is used, and why; None if not tried (yet)."""
    if counts.compared_lost is None:
        return None
    without, with_it = (percent(share) for share in counts.compared_lost)
    is_used = "is used" if "feature" in counts.ranked_by else "is not used"
    return (
        f"feature {counts.feature} {is_used}: of {counts.compared:,.0f} matches held against both "
        f"models {without} would have been lost without it, {with_it} with it"
    )


def _ranked_text(counts: SheddingCounts) -> str:
    """Return the ranking that dropped pairs had, else the one for the next."""
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

"""Slices of a sample as a table of observations; the spread of their work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.observations import StageCost, StageObservations, spans_of
from slackwater.runtime.foresight.observed.stretches import MOST, Stretched
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.simulate import MeasuredSlice

__all__ = ["observed_slices", "work_spread"]


def observed_slices(
    stages: Sequence[Stage], reports: Mapping[str, StageReport], slices: Iterable[MeasuredSlice]
) -> list[StageObservations]:
    """Return the observations of all stages of a plan, from a run over a sample.

    Args:
        stages: stages of the plan, in topological order.
        reports: {stage: its report at the end of the sample}.
        slices: all slices, in their order.

    Raises:
        SettingError: a stage has no report.
    """
    own: dict[str, list[MeasuredSlice]] = {stage.name: [] for stage in stages}
    for measured in slices:
        if measured.rows or measured.released:
            own[measured.stage].append(measured)
    observed = []
    for stage in stages:
        report = reports.get(stage.name)
        if report is None:
            raise SettingError(
                f"stage {stage.name!r} is not in the sample's report, so what an event costs it is "
                "not known; take a sample of this version of the flow"
            )
        observed.append(_observed(stage, report, own[stage.name]))
    return observed


def _observed(
    stage: Stage, report: StageReport, slices: Sequence[MeasuredSlice]
) -> StageObservations:
    spans = spans_of(stage)
    return StageObservations(
        name=stage.name,
        inputs=tuple(dict.fromkeys(channel.source for channel in stage.inputs)),
        rows_in=report.rows_in,
        rows_out=report.rows_out,
        rows=[each.rows for each in slices],
        busy_s=[each.took_ns / NS_PER_SECOND for each in slices],
        released=[each.released for each in slices],
        out=[each.results for each in slices],
        pairs=[each.comparisons for each in slices],
        window_s=spans.window_s,
        within_s=spans.within_s,
    )


def work_spread(
    slices: Iterable[MeasuredSlice],
    part: Stretched,
    costs: Mapping[str, tuple[StageCost, StageCost]],
) -> float:
    """Return the standard error of a source row's cost, as a share.

    Parts of the sample differ by chance and as data drift. Stretches evenly over the input stand
    for the rows between. A single stretch from its start does not, so the rest may differ from it
    as much as its parts differ. A part ends when its rows of any source end.

    Args:
        slices: all slices, in their order.
        part: the rows of the sample.
        costs: {stage: its costs, and those in full slices}, so the number of slices has no effect.
    """
    count = part.count if part.count > 1 else MOST
    read = dict.fromkeys(part.rows, 0)
    work_s, came = np.zeros(count), np.zeros(count)
    now, slices = 0, list(slices)
    ends = _ends(part, slices)
    for each_slice in slices:
        stage, rows = each_slice.stage, each_slice.rows
        if stage in read:
            number = int(np.searchsorted(ends[stage], read[stage], side="right"))
            now = max(now, min(number, count - 1))
            read[stage] += rows
            came[now] += rows
        if stage in costs and (rows or each_slice.released):
            cost, full = costs[stage]
            share_s = rows * (full.row_s - cost.row_s)
            work_s[now] += max(each_slice.took_ns / NS_PER_SECOND - cost.fixed_s, 0.0) + share_s
    each = work_s[came > 0] / came[came > 0]
    if len(each) < 2 or each.mean() <= 0:
        return 0.0
    unseen = max(1 - part.covers_s / part.looked_s, 0.0) if part.looked_s > 0 else 1.0
    own = 1 / len(each) + (unseen if part.count == 1 else 0.0)
    return float(each.std(ddof=1) / each.mean() * np.sqrt(own))


def _ends(part: Stretched, slices: Sequence[MeasuredSlice]) -> dict[str, FloatArray]:
    """Return the last row of each part of the sample, for each source."""
    if part.count > 1:
        return {name: np.cumsum([b - a for a, b in each]) for name, each in part.rows.items()}
    read = {name: sum(s.rows for s in slices if s.stage == name) for name in part.rows}
    return {name: rows * np.arange(1, MOST + 1) / MOST for name, rows in read.items()}

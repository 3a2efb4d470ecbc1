"""Notes on steps that may have missed rows: late, dropped, or never kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from slackwater.runtime.measure.outcomes import FORGOTTEN
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.plan.steps import SourceStep, sources_among
from slackwater.runtime.plan.traits import Keep


def keep_notes(plan: Plan, stages: Mapping[str, StageReport]) -> list[str]:
    """Return a note for each step that dropped rows early or forgot keys.

    So it does for each that got rows late, and for each join that keeps rows by its slack and has a
    source that promises nothing.

    Args:
        plan: plan of the run.
        stages: {stage: its report}; without stages that died before their first report.
    """
    notes: list[str] = []
    for stage in plan.stages:
        notes += _by_slack(stage, plan)
        if stage.name in stages:
            notes += _forgotten(stage, stages[stage.name])
        if stage.name in stages and _keep_rule(stage) == "promise":
            notes += _dropped_early(stage, stages, plan)
            notes += _older(stage, stages[stage.name], plan)
    return notes


def _forgotten(stage: Stage, report: StageReport) -> Iterable[str]:
    if keys := report.counts[FORGOTTEN]:
        yield (
            f"{stage.name!r} forgot the state of {keys:,} keys, of which no row came for its "
            "within=; a later row of such a key begins with a new state: write within=None to "
            "keep each key to the end"
        )


def _keep_rule(stage: Stage) -> Keep | None:
    return stage.step.traits.keep_rule


def _by_slack(stage: Stage, plan: Plan) -> Iterable[str]:
    if stage.shares_gate or stage.is_ready_only or _keep_rule(stage) != "slack":
        return
    if stage.replica is not None and stage.replica.index:
        return  # the first replica has the note for all
    silent = ", ".join(repr(name) for name in _silent_above(stage, plan))
    if silent:
        yield (
            f"{stage.subject.step!r} keeps its rows by what was released, so that late ones may "
            f"miss partners: by promises it would keep all of them, for {silent} can promise "
            "nothing before its end; let it promise, with idle=, disorder= or promise=, or write "
            "keep='promise', which keeps all, up to most_kept_rows"
        )


def _silent_above(stage: Stage, plan: Plan) -> list[str]:
    return [step.name for step in _sources_above(stage, plan) if step.source.promises_nothing]


def _sources_above(stage: Stage, plan: Plan) -> list[SourceStep]:
    by_name = {other.name: other for other in plan.stages}
    above = list(dict.fromkeys(channel.source for channel in stage.inputs))
    for name in above:  # the list grows in the loop
        new = dict.fromkeys(channel.source for channel in by_name[name].inputs)
        above += [other for other in new if other not in above]
    return sources_among(by_name[name].step for name in above)


def _named(name: str, plan: Plan) -> str:
    (stage,) = [candidate for candidate in plan.stages if candidate.name == name]
    above = sorted(repr(step.name) for step in _sources_above(stage, plan))
    return f"{name!r} (fed by {', '.join(above)})" if above else repr(name)


def _dropped_early(stage: Stage, stages: Mapping[str, StageReport], plan: Plan) -> Iterable[str]:
    report = stages[stage.name]
    if not report.dropped_early:
        return
    gate = stages.get(stage.inputs[0].source, report) if stage.shares_gate else report
    waits = sorted(gate.held_back.items(), key=lambda pair: -pair[1])
    waited_for = ", ".join(_named(source, plan) for source, _ in waits) or "an input"
    yield (
        f"{stage.name!r} dropped {report.dropped_early:,} rows before all their partners were "
        "promised to be there, for it held more than most_kept_rows; it waited for the promise of "
        f"{waited_for}. Rows that came after that may have missed {_what(stage)}: let that source "
        "promise, with idle=, disorder= or promise=, or give the job Limits(most_kept_rows=…)"
    )


def _older(stage: Stage, report: StageReport, plan: Plan) -> Iterable[str]:
    if not report.older_than_promised:
        return
    late = report.older_than_promised.items()
    rows = ", ".join(f"{count:,} of {_named(source, plan)}" for source, count in late)
    yield (
        f"{stage.name!r} had gone on without writers that were silent for their idle=; rows that "
        f"came late for that and may have missed {_what(stage)}: {rows}"
    )


def _what(stage: Stage) -> str:
    return stage.step.traits.misses

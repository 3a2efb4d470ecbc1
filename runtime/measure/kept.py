"""What a report says of joins whose rows may have missed partners although they keep by promise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runtime.flow.plan import Plan, Stage
from runtime.flow.steps import GateStep, JoinStep
from runtime.measure.report import StageReport


def kept_notes(plan: Plan, stages: Mapping[str, StageReport]) -> list[str]:
    """Return a sentence for each join that let rows go too soon, or was sent rows too late.

    Args:
        plan: of the run.
        stages: {stage: its report}; a stage that died unheard is not in it.
    """
    notes: list[str] = []
    for stage in plan.stages:
        if stage.name in stages and _keeps_by_promise(stage):
            notes += _let_go(stage, stages)
            notes += _behind(stage.name, stages[stage.name])
    return notes


def _keeps_by_promise(stage: Stage) -> bool:
    return isinstance(stage.step, JoinStep | GateStep) and stage.step.keep == "promise"


def _let_go(stage: Stage, stages: Mapping[str, StageReport]) -> Iterable[str]:
    report = stages[stage.name]
    if not report.let_go:
        return
    gate = stages.get(stage.inputs[0].source, report) if stage.replica else report
    waits = sorted(gate.held_back.items(), key=lambda one: -one[1])
    waited_for = ", ".join(repr(source) for source, _ in waits) or "an input"
    yield (
        f"{stage.name!r} let {report.let_go:,} rows go before their partners had all been promised "
        "to be there, for it held more than most_kept_rows; it waited for the promise of "
        f"{waited_for}. What came late behind them may have missed pairs: let that source "
        "promise, with idle=, disorder= or promise=, or give the job Limits(most_kept_rows=…)"
    )


def _behind(name: str, report: StageReport) -> Iterable[str]:
    if not report.behind_promise:
        return
    rows = ", ".join(f"{count:,} of {source!r}" for source, count in report.behind_promise.items())
    yield (
        f"{name!r} had gone on without writers that were silent for their idle=; rows that came "
        f"behind that and may have missed partners: {rows}"
    )

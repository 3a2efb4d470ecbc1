"""Work of a stage on rows: its operator, then steps row by row.

```
gate ─▶ StageOperator ─▶ Chain ─▶ outputs   each counts, step by step,
        join             filter ▸ select      what went in and what came out
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slackwater.runtime.expressions.row_tests import RowTests
from slackwater.runtime.measure.outcomes import FILTERED, READY
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.measure.step_report import StepReport
from slackwater.runtime.model import START_NS, Batch, GateRead
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators import make_operator, make_stateless
from slackwater.runtime.plan.arrivals import closes_of
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.step import GatedStep, Role, Step
from slackwater.runtime.schedule.accounts import count_closing, count_in
from slackwater.runtime.schedule.actions import LookedAt


class Chain:
    """Steps that look at each row alone, one after the other.

    Attributes:
        counts: of each step.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.counts = [StepReport(step.name, step.kind, [0]) for step in steps]
        self._steps = list(zip(map(make_stateless, steps), self.counts, strict=True))

    @property
    def row_tests(self) -> RowTests | None:
        """First step row by row, if it is such a filter."""
        return getattr(self._steps[0][0], "row_tests", None) if self._steps else None

    def tested(self, passed: int, left_out: int, report: StageReport) -> None:
        """Count rows that have been through the first step's tests already, and for the stage."""
        first = self.counts[0]
        first.rows_in[0] += passed + left_out
        first.rows_out += passed
        report.counts[READY] += left_out
        report.counts[FILTERED] += left_out

    def apply(self, batch: Batch, first: int = 0) -> tuple[Batch, int]:
        """Return the rows that remain, in order, and how many.

        Args:
            batch: the rows.
            first: the number of the step that they reach first.
        """
        rows = len(batch.event_time_ns)
        for machine, counts in self._steps[first:] if first else self._steps:
            counts.rows_in[0] += rows
            batch = machine.apply(batch)
            rows = len(batch.event_time_ns)
            counts.rows_out += rows
            if not rows:
                break
        return batch, rows


class StageOperator:
    """Operator in its stage: its reads, its time by the clock, its counts.

    Args:
        step: of the operator.
        most_kept_rows: see Limits.

    Attributes:
        operator: its machine.
        counts: of the step.
    """

    def __init__(self, step: GatedStep, *, most_kept_rows: int) -> None:
        self.operator = make_operator(step, most_kept_rows=most_kept_rows)
        self._ports = range(max(step.ports) + 1)
        self.counts = StepReport(step.name, step.kind, [0 for _ in self._ports])
        self._counters, self._passes_on = step.counters, step.passes_on
        self._compares = "comparisons" in step.counters
        self._has_time = step.has_time
        self._closes = closes_of(step) is not None
        self._sheds = getattr(step, "shed", None) is not None
        self._told = (START_NS, 0, START_NS)  # watermark, its stimulus, frontier: of the last read

    def work(self, released: GateRead, now_ns: int) -> tuple[Batch | None, int]:
        """Hand a read to the operator.

        Returns:
            What leaves it; and of one that passes rows on how many it has kept to itself, those
            apart that were too late for it.
        """
        operator, rows_in = self.operator, self.counts.rows_in
        rows = 0
        for port in self._ports:
            in_order, late = released.ports[port], released.late[port]
            if in_order is not None:
                came = len(in_order.event_time_ns)
                rows_in[port] += came
                rows += came
            if late is not None:
                came = len(late.event_time_ns)
                rows_in[port] += came
                rows += came
        dropped = operator.late_dropped if self._passes_on else 0
        batch = operator.process(released, now_ns)
        if self._has_time:
            self._told = (
                released.watermark_ns,
                released.watermark_stimulus_ns,
                released.frontier_ns,
            )
        left = 0 if batch is None else len(batch.event_time_ns)
        self.counts.rows_out += left
        if not self._passes_on:
            return batch, 0
        return batch, rows - left - (operator.late_dropped - dropped)

    def due_ns(self) -> int | None:
        """Return when the operator is due by the clock; None if never."""
        return self.operator.due_ns()

    def took(self, took_ns: int, idle_ns: int) -> None:
        """Tell an operator that sheds how long its slice took and its slot idled."""
        if self._sheds:
            self.operator.took(took_ns, idle_ns)  # type: ignore[attr-defined]  # its step says so

    def nothing_new(self) -> GateRead:
        """Return a read without rows, as far as the last one."""
        none: list[Batch | None] = [None for _ in self._ports]
        return GateRead(none, none, *self._told)

    @property
    def waited_ns(self) -> int:
        """Longest wait of the windows that closed in the last slice, in ns."""
        if not self._closes:
            return 0
        found: int = self.operator.waited_ns  # type: ignore[attr-defined]  # its step says so
        return found

    @property
    def looked_at(self) -> LookedAt:
        """Rows that the operator has looked at so far, if its step tells them."""
        pairs: int = self.operator.comparisons if self._compares else 0  # type: ignore[attr-defined]
        passed: int | None = self.operator.passed_over if self._sheds else None  # type: ignore[attr-defined]
        return LookedAt(pairs, passed)

    def fill(self, report: StageReport) -> None:
        """Fill in what the operator holds and counts."""
        report.held = self.operator.rows_held
        if self._closes:
            count_closing(report, self.operator)
        if self._sheds:
            report.shedding = self.operator.shedding  # type: ignore[attr-defined]  # its step says so
        for name in self._counters:
            count_in(report, name, getattr(self.operator, name))

    def snapshot(self) -> dict[str, Any]:
        """Return all state, counts apart."""
        return {"operator": save(self.operator), "told": self._told}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        restore(self.operator, state["operator"])
        watermark_ns, stimulus_ns, frontier_ns = state["told"]
        self._told = (watermark_ns, stimulus_ns, frontier_ns)


def steps_counted(
    stage: Stage, operator_at: StageOperator | None, chain: Chain
) -> list[StepReport]:
    """Return the counts of a stage's steps: its own, then those after it."""
    if operator_at is not None:
        return [operator_at.counts, *chain.counts]
    if stage.step.role is Role.EACH_ROW:
        return list(chain.counts)
    ports = [0] if stage.inputs else []
    return [StepReport(stage.name, stage.step.kind, ports), *chain.counts]


def count_alone(report: StageReport) -> None:
    """Count the step of a source, gate or sink by the rows of its stage."""
    own = report.steps[0]
    own.rows_in, own.rows_out = [report.used for _ in own.rows_in], report.used


def restore_report(report: StageReport, state: Mapping[str, Any]) -> None:
    """Continue a report of a snapshot; the objects that count steps stay."""
    steps, found = report.steps, StageReport.from_plain(state)
    vars(report).update({**vars(found), "steps": steps})
    for own, counted in zip(steps, found.steps, strict=True):
        own.rows_in[:], own.rows_out = counted.rows_in, counted.rows_out

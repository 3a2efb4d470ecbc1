"""Report of a job, assembled from the parts that its slots keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slackwater.runtime.measure.buckets import rows_where
from slackwater.runtime.measure.deadline import deadline_notes, with_totals
from slackwater.runtime.measure.histogram import LatencyHistogram
from slackwater.runtime.measure.keep_notes import keep_notes
from slackwater.runtime.measure.ledger import ledger_of, untold_rows
from slackwater.runtime.measure.outcomes import BAD_TIME, FAILED, UNREADABLE
from slackwater.runtime.measure.prediction import PredictionReport, prediction_notes, with_measured
from slackwater.runtime.measure.published import published_notes
from slackwater.runtime.measure.report import (
    ChannelReport,
    ClockReport,
    JobReport,
    SinkReport,
    StageReport,
    Standstill,
)
from slackwater.runtime.measure.series import LatencySeries
from slackwater.runtime.measure.skew import Skew, skew_of
from slackwater.runtime.measure.standstill import standstills
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.measure.wall_clock import clock_notes
from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.ranges import starts_of_runs
from slackwater.runtime.model.row_marks import rows_by_mark
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.plurals import count_of

_ROWS_AT_ONCE, _BATCHES_AT_ONCE = 4_096, 64
_LOOK_AT = {
    BAD_TIME: "look at event_time= and time_unit= of the source",
    UNREADABLE: "look at the form of its file, such as sep=, columns= or types=",
    FAILED: "look at the error of its function",
}
"""{outcome of rows that cannot be used: where their reason may be}."""
_UNREPORTED = (
    "slot {slot!r} ended before its last report: its counts are of an earlier moment, and what it "
    "read and sent after it is not known"
)


class SinkMeter:
    """Latency of rows that leave at one sink. Source: [mace] Def. 3.

    Rows of several batches are counted together: for one row, counting takes as long as joining. In
    a large one many rows in a row have one stimulus, and are one value.

    It packs itself: what is saved is in its report, in the form in which that is sent.
    """

    def __init__(self, name: str, node: str, *, deadline_ns: int | None = None) -> None:
        self._report = SinkReport(
            name,
            node,
            latency=LatencyHistogram(),
            series=LatencySeries(),
            deadline_ns=deadline_ns,
        )
        # (stimulus times, egress, rows of each or None), as `_count` takes them
        self._waiting: list[tuple[Int64Array, int, Int64Array | None]] = []
        self._values_waiting = self._rows_waiting = 0
        self._rows_again = 0  # passed over, and still to be counted

    @property
    def next_ordinal(self) -> int:
        """Ordinal of the sink's next row: the rows that have left or were skipped."""
        decided = self._report.rows + self._rows_waiting + self._rows_again
        return decided + self._report.already_committed

    def skip(self, rows: int) -> None:
        """Count rows that an earlier run has committed."""
        self._report.already_committed += rows

    def pass_over(self, rows: int) -> None:
        """Note rows that this run has written before a recovery; `came_again` counts them."""
        self._rows_again += rows

    def came_again(self, batch: Batch) -> None:
        """Count rows that were passed over, without a latency: they left before the recovery."""
        self._rows_again -= len(batch)
        self._report.came_again += len(batch)
        self._report.rows += len(batch)
        self._count_marks(batch)

    def add(self, batch: Batch, egress_ns: int) -> None:
        """Count rows that have just left."""
        self._count_marks(batch)
        values_ns, rows = batch.stimulus_time_ns, None
        if len(values_ns) > _ROWS_AT_ONCE:
            values_ns, rows = _runs(values_ns)
        self._waiting.append((values_ns, egress_ns, rows))
        self._values_waiting += len(values_ns)
        self._rows_waiting += len(batch)
        if self._values_waiting > _ROWS_AT_ONCE or len(self._waiting) > _BATCHES_AT_ONCE:
            self._count_waiting()

    @property
    def report(self) -> SinkReport:
        """Report of all rows that have left so far."""
        if self._waiting:
            self._count_waiting()
        return self._report

    def snapshot(self) -> dict[str, Any]:
        """Return rows and latencies so far, as plain values."""
        report = self.report
        return {
            "rows": report.rows,
            "already_committed": report.already_committed,
            "came_again": report.came_again,
            "in_time": report.in_time,
            "marked": dict(report.marked),
            "latency": report.latency.to_json(),
            "series": report.series.to_json(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self._report.rows = state["rows"]
        self._report.already_committed = state["already_committed"]
        self._report.came_again = state["came_again"]
        self._report.in_time = state["in_time"]
        self._report.marked = dict(state["marked"])
        self._report.latency = LatencyHistogram.from_json(state["latency"])
        self._report.series = LatencySeries.from_json(state["series"])

    def _count_marks(self, batch: Batch) -> None:
        if batch.marks is not None:
            for mark, rows in rows_by_mark(batch.marks).items():
                self._report.marked[mark] = self._report.marked.get(mark, 0) + rows

    def _count_waiting(self) -> None:
        waiting = self._waiting
        stimulus_ns = np.concatenate([values_ns for values_ns, _, _ in waiting])
        latency_ns = np.concatenate([egress_ns - values_ns for values_ns, egress_ns, _ in waiting])
        rows = None
        if any(each is not None for _, _, each in waiting):
            rows = np.concatenate(
                [np.ones_like(values_ns) if own is None else own for values_ns, _, own in waiting]
            )
        self._waiting = []
        self._values_waiting = self._rows_waiting = 0
        self._count(stimulus_ns, latency_ns, rows)

    def _count(
        self, stimulus_ns: Int64Array, latency_ns: Int64Array, rows: Int64Array | None = None
    ) -> None:
        """Count values; `rows` has how many rows have each, None if each has one."""
        report = self._report
        report.rows += len(stimulus_ns) if rows is None else int(np.add.reduce(rows))
        report.latency.add(latency_ns, rows)
        if report.deadline_ns is not None:
            report.in_time += rows_where(latency_ns <= report.deadline_ns, rows)
        report.series.add(stimulus_ns, latency_ns, rows)


def _runs(values: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the value of each run of equal ones, and the rows of each."""
    starts = starts_of_runs(values)
    return values.take(starts), np.diff(starts, append=len(values))


def merge_channels(parts: Iterable[ChannelReport]) -> list[ChannelReport]:
    """Return one report per channel from its two ends, which each count their side."""
    merged: dict[str, ChannelReport] = {}
    for part in parts:
        whole = merged.setdefault(part.name, ChannelReport(part.name, part.source, part.target))
        whole.rows_sent += part.rows_sent
        whole.rows_received += part.rows_received
        whole.bytes_sent += part.bytes_sent
        whole.messages += part.messages
        whole.promises += part.promises
        whole.withheld += part.withheld
        whole.link_ns += part.link_ns
        if part.least_link_ns is not None:  # of the two ends, the receiver measures it
            whole.least_link_ns = part.least_link_ns
    return list(merged.values())


def job_report(  # noqa: PLR0913 - a report has that many parts, each by name
    plan: Plan,
    *,
    state: str,
    host: str,
    nodes: Sequence[str],
    elapsed_s: float,
    stages: Iterable[StageReport],
    channels: Iterable[ChannelReport],
    sinks: Iterable[SinkReport],
    error: str | None = None,
    notes: Sequence[str] = (),
    clocks: Mapping[str, ClockReport] | None = None,
    refused_peers: int = 0,
    tuning: TuningReport | None = None,
    prediction: PredictionReport | None = None,
    unreported: Sequence[str] = (),
) -> JobReport:
    """Return the report of a run, stages and channels in the order of the plan.

    `clocks` is {slot: report of its clock}, empty in virtual time. `tuning` is the tuner's report;
    None if the job has no tuner. `prediction` is None if nothing was predicted. `unreported` are
    slots that ended before they could report.
    """
    errors, of_nodes = _ClockErrors(plan, clocks or {}), _of_nodes(clocks or {})
    by_name = {stage.name: stage for stage in stages}
    ordered = [by_name[stage.name] for stage in plan.stages if stage.name in by_name]
    merged = {channel.name: channel for channel in merge_channels(channels)}
    carried = [merged[c.name] for c in plan.channels if c.name in merged]
    sinks = list(sinks)
    if prediction is not None:
        prediction = with_measured(prediction, [sink.series for sink in sinks])
    for channel in carried:
        channel.error_ns = errors.between(channel.source, channel.target)
    skewed = _skews(plan, by_name)
    unheard = [_unheard(plan, stage) for stage in plan.stages if stage.name not in by_name]
    still_ns = plan.limits.still_ns
    still = _standstills(ordered, carried, state=state, elapsed_s=elapsed_s, still_ns=still_ns)
    old_s = {name: standstill.still_s for standstill in still for name in standstill.sinks}
    return JobReport(
        flow=plan.flow,
        state=state,
        host=host,
        nodes=list(nodes),
        elapsed_s=elapsed_s,
        stages=ordered,
        channels=carried,
        sinks=[
            replace(sink, error_ns=errors.of_latency(sink.name), old_s=old_s.get(sink.name))
            for sink in sinks
        ],
        ledger=replace(
            ledger_of([*ordered, *unheard], carried),
            is_final=state == "done",
            results=sum(sink.rows for sink in sinks),
            unreported=tuple(unreported),
        ),
        error=error,
        notes=[
            *notes,
            *unused_notes(ordered),
            *_missing_notes(ordered),
            *_forgotten_notes(ordered),
            *published_notes(state, sinks),
            *_untold_notes(state, carried),
            *[_UNREPORTED.format(slot=slot) for slot in unreported],
            *keep_notes(plan, by_name),
            *[skew.note for skew in skewed],
            *(_idle_notes(plan, by_name) if state == "done" else []),
            *deadline_notes(plan, tuning),
            *prediction_notes(prediction),
            *clock_notes(of_nodes),
        ],
        clocks=of_nodes,
        refused_peers=refused_peers,
        tuning=None if tuning is None else with_totals(tuning, ordered, plan),
        prediction=prediction,
        standstills=still,
        skews=skewed,
    )


def _missing_notes(stages: Iterable[StageReport]) -> list[str]:
    """Return notes on rows that took out others which were not there."""
    return [
        f"stage {stage.name!r}: {count_of(ignored, 'row')} took out what was not there, and "
        "changed nothing (on_missing='count')"
        for stage in stages
        if (ignored := stage.counted.get("missing_rows"))
    ]


def _forgotten_notes(stages: Iterable[StageReport]) -> list[str]:
    """Return notes on keys that were forgotten."""
    return [
        f"stage {stage.name!r}: {count_of(forgotten, 'key')} got no row for keep=, and went"
        for stage in stages
        if (forgotten := stage.counted.get("forgotten_keys"))
    ]


def unused_notes(stages: Iterable[StageReport]) -> list[str]:
    """Return notes on stages that could use none of their rows."""
    notes = []
    for stage in stages:
        bad = {outcome: stage.counts[outcome] for outcome in _LOOK_AT}
        if stage.rows_in and sum(bad.values()) == stage.rows_in:
            hints = "; ".join(_LOOK_AT[outcome] for outcome, rows in bad.items() if rows)
            notes.append(
                f"stage {stage.name!r} could use none of its {stage.rows_in:,} rows; {hints}"
            )
    return notes


def _skews(plan: Plan, stages: Mapping[str, StageReport]) -> list[Skew]:
    """Return the skews of steps whose replicas divide keys."""
    shares = plan.key_shares
    of_steps = [
        skew_of(
            step,
            {name: report.rows_in for name, report in own.items()},
            {name: shares[name] for name in own},
            {name: (report.hot_key, report.hot_key_share) for name, report in own.items()},
        )
        for step, own in _dividing(plan, stages).items()
    ]
    return [skew for skew in of_steps if skew is not None]


def _idle_notes(plan: Plan, stages: Mapping[str, StageReport]) -> list[str]:
    """Return notes on replicas that got no row, for want of keys."""
    notes = []
    for step, own in _dividing(plan, stages).items():
        idle = [name for name, report in own.items() if not report.rows_in]
        if idle and len(idle) < len(own):
            names = ", ".join(idle[:3]) + (", …" if len(idle) > 3 else "")
            notes.append(
                f"{step!r}: {len(idle)} of {len(own)} replicas got no row ({names}), as "
                f"its keys are few; replicas={len(own) - len(idle)} may do, with the same results"
            )
    return notes


def _dividing(plan: Plan, stages: Mapping[str, StageReport]) -> dict[str, dict[str, StageReport]]:
    """Return {step: {replica: its report}} of replicas that own keys."""
    groups = plan.key_groups
    replicas: dict[str, dict[str, StageReport]] = {}
    for stage in plan.stages:
        if groups.get(stage.name) and stage.name in stages:
            replicas.setdefault(stage.subject.step, {})[stage.name] = stages[stage.name]
    return replicas


def _unheard(plan: Plan, stage: Stage) -> StageReport:
    # It died before its first report, so it has no rows.
    passes_on, kind = stage.step.traits.passes_on, stage.kind
    return StageReport(stage.name, kind, node="", slot=plan.slots[stage.name], passes_on=passes_on)


def _untold_notes(state: str, channels: Sequence[ChannelReport]) -> list[str]:
    """Return notes on rows that senders of a cut-off job sent after their last report."""
    if state not in ("failed", "stopped"):
        return []
    return [
        f"{name!r} ended before it could report its last rows: {rows:,} more were taken from it "
        "than its counts say, and what else it read and sent is not known"
        for name, rows in untold_rows(channels).items()
    ]


def _standstills(
    stages: Sequence[StageReport],
    channels: Sequence[ChannelReport],
    *,
    state: str,
    elapsed_s: float,
    still_ns: int,
) -> list[Standstill]:
    if state not in ("running", "stopped"):
        return []
    return standstills(stages, channels, elapsed_s=elapsed_s, still_ns=still_ns)


class _ClockErrors:
    """Errors of times that begin by one slot's clock and end by another's."""

    def __init__(self, plan: Plan, clocks: Mapping[str, ClockReport]) -> None:
        self._plan, self._clocks = plan, clocks

    def between(self, slot: str, other: str) -> int:
        """Return the error of a time between two stages, ns; 0 within a slot."""
        slots = {self._plan.slots[slot], self._plan.slots[other]}
        if len(slots) == 1:
            return 0
        return sum(self._clocks[s].largest_error_ns for s in slots if s in self._clocks)

    def of_latency(self, sink: str) -> int:
        """Return the error of a latency at a sink, ns: the largest over its sources."""
        upstream = {sink}
        for stage in reversed(self._plan.stages):  # in topological order
            if any(channel.target in upstream for channel in stage.outputs):
                upstream.add(stage.name)
        sources = [s.name for s in self._plan.stages if s.kind == "source" and s.name in upstream]
        return max((self.between(source, sink) for source in sources), default=0)


def _of_nodes(clocks: Mapping[str, ClockReport]) -> list[ClockReport]:
    """Return one clock report for each node: its slot with the most steps and error."""
    worst: dict[str, ClockReport] = {}
    refused: dict[str, int] = {}
    for clock in clocks.values():
        known = worst.setdefault(clock.node, clock)
        rank = (clock.steps, clock.largest_error_ns)
        if rank > (known.steps, known.largest_error_ns):
            worst[clock.node] = clock
        refused[clock.node] = refused.get(clock.node, 0) + clock.refused
    return [replace(clock, refused=refused[node]) for node, clock in worst.items()]

"""Reports made by hand, for tests of what reads them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slackwater.runtime.measure.ledger import ledger_of
from slackwater.runtime.measure.outcomes import READY
from slackwater.runtime.measure.report import (
    ChannelReport,
    ClockReport,
    JobReport,
    SinkReport,
    StageReport,
)
from slackwater.runtime.measure.tuning import GateTuning, TuningReport
from slackwater.runtime.measure.tuning_series import GateSpan, TuningSpan
from slackwater.runtime.model import ReleaseRule

MS = 10**6
SECOND = 10**9
START_NS = 1_700_000_000 * SECOND


def stage(name: str, kind: str, rows_in: int, rows_out: int, **more: int) -> StageReport:
    """A stage that released all its rows in order, but for what `more` says."""
    node = {"source": "node-1", "sink": "node-3"}.get(kind, "node-2")
    made = StageReport(name, kind, node, f"{node}/0", rows_in=rows_in, rows_out=rows_out)
    made.passes_on = kind in ("source", "stateless", "merge")
    made.has_gate = kind in ("merge", "gate", "join", "aggregate")
    for key, value in more.items():
        setattr(made, key, value)
    if "ready" not in more:
        other = made.slack_ready + made.late + made.late_dropped + made.in_flight
        made.ready = rows_in - other
    return made


def city_report(rows: int = 1_000, *, state: str = "done", elapsed_s: float = 10.0) -> JobReport:
    """Buses, filtered, joined with loops on another node; one result in ten events."""
    results = rows // 10
    stages = [
        stage("buses", "source", rows, rows // 2, filtered=rows - rows // 2),
        stage("loops", "source", rows, rows),
        stage("jams", "join", rows + rows // 2, results, late_dropped=3, late=2, slack_ready=7),
        stage("alerts", "sink", results, results),
    ]
    for one in stages:
        one.service_ns = 300 * one.rows_in
        one.queue_wait_ns = 40_000 * one.rows_in
    stages[2].gate_wait_ns = 120 * MS * stages[2].rows_in
    channels = [
        ChannelReport("buses→jams", "buses", "jams", rows // 2, rows // 2, 20 * rows, 10, 10**6),
        ChannelReport("loops→jams", "loops", "jams", rows, rows, 40 * rows, 10, 10**6),
        ChannelReport("jams→alerts", "jams", "alerts", results, results, 9 * rows, 10, 10**6),
    ]
    sink = SinkReport("alerts", "node-3", results, "jsonl out/alerts.jsonl")
    latency_ns = (np.arange(results) % 100 + 1) * MS
    sink.latency.add(latency_ns)
    sink.series.add(START_NS + np.arange(results) * SECOND // 10, latency_ns)
    return JobReport(
        flow="city",
        state=state,
        host="ray",
        nodes=["node-1", "node-2", "node-3"],
        elapsed_s=elapsed_s,
        stages=stages,
        channels=channels,
        sinks=[sink],
        ledger=replace(ledger_of(stages, channels), results=results),
        notes=["three nodes simulated on one machine share its clock and its cores"],
    )


def with_clocks(report: JobReport) -> JobReport:
    """The same run, had each node a clock of its own: node-2 an hour ahead, node-3 2 ms behind."""
    errors = {"node-1": 0, "node-2": 100_000, "node-3": 250_000}
    hour = 3_600 * SECOND
    clocks = [
        ClockReport("node-1"),
        ClockReport("node-2", -hour, 90_000, 100_000, 160_000, 68, is_reference=False),
        ClockReport("node-3", 2 * MS, 240_000, 250_000, 400_000, 67, is_reference=False, refused=3),
    ]
    node = {stage.name: stage.node for stage in report.stages}
    channels = [
        replace(one, error_ns=errors[node[one.source]] + errors[node[one.target]])
        for one in report.channels
    ]
    sinks = [replace(one, error_ns=errors[one.node]) for one in report.sinks]
    return replace(report, clocks=clocks, channels=channels, sinks=sinks)


def with_deadline(report: JobReport, *, seconds: int = 330) -> JobReport:
    """The same run, had it had a deadline of 6 s, which its last second broke."""
    tuning = TuningReport(6 * SECOND, "sltuner", gates=[GateTuning("jams")])
    for second in range(seconds):
        latency_ns = 5 * SECOND if second < seconds - 1 else 7 * SECOND
        is_over = latency_ns > tuning.deadline_ns
        gate = GateSpan(4 * SECOND, 3, 1, latency_ns, 5 * SECOND, "climb")
        tuning.series.add(TuningSpan(second, 1, latency_ns, is_over, 10, {"jams": gate}))
        tuning.latency.add(np.array([latency_ns]))
        tuning.seconds, tuning.over = tuning.seconds + 1, tuning.over + is_over
        tuning.gates = [
            GateTuning(
                "jams",
                ReleaseRule.slack(4 * SECOND),
                "climb",
                slack_ready=18,
                late=5,
                rows_in=report.stages[2].rows_in,
            )
        ]
    return replace(report, tuning=tuning)


def with_lost_rows(report: JobReport, *, rows: int) -> JobReport:
    """The same run, had the join lost some rows without a word."""
    stages = [
        replace(one, counts=one.counts.added([(READY, -rows)])) if one.kind == "join" else one
        for one in report.stages
    ]
    return replace(report, stages=stages, ledger=ledger_of(stages, report.channels))

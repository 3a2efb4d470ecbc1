"""Latency as it is shown: what it is made of, and how sure the clocks are of it."""

from __future__ import annotations

import json
from dataclasses import replace

from slackwater.report.latency_table import latency_json, latency_text
from slackwater.runtime.measure.report import JobReport
from tests.support.reports import MS, city_report


def measured() -> JobReport:
    """The city, its loops on a clock of their own."""
    report = city_report()
    report.sinks[0].error_ns = 300_000
    for channel in report.channels:
        channel.link_ns = channel.messages * 2 * MS
        channel.least_link_ns = MS
        channel.error_ns = 250_000 if channel.source == "loops" else 0
    return report


def test_each_figure_between_clocks_has_its_error() -> None:
    text = latency_text(measured())
    alerts = next(line for line in text.splitlines() if line.startswith("alerts"))
    assert alerts.split()[:3] == ["alerts", "node-3", "100"]
    assert alerts.endswith("300 µs")
    jams = next(line for line in text.splitlines() if line.startswith("jams "))
    assert " ".join(jams.split()) == "jams node-2 2.00 ms 250 µs 120 ms 40.0 µs 300 ns"
    link = next(line for line in text.splitlines() if line.startswith("loops→jams"))
    assert " ".join(link.split()) == "loops→jams node-1 node-2 10 1.00 ms 2.00 ms 250 µs"
    assert all(len(line) <= 100 for line in text.splitlines())


def test_the_same_figures_are_there_as_json() -> None:
    plain = json.loads(json.dumps(latency_json(measured())))
    alerts = plain["sinks"]["alerts"]
    assert alerts["rows"] == 100
    assert alerts["error_ms"] == 0.3
    assert alerts["p50_ms"] <= alerts["p90_ms"] <= alerts["p99_ms"] <= alerts["p99_9_ms"]
    assert alerts["max_ms"] == 100.0
    assert plain["stages"]["jams"]["gate_wait_ms"] == 120.0
    assert plain["stages"]["buses"]["network_ms"] is None
    assert plain["links"]["loops→jams"] == {
        "from": "node-1",
        "to": "node-2",
        "messages": 10,
        "least_ms": 1.0,
        "mean_ms": 2.0,
        "error_ms": 0.25,
    }


def test_a_channel_within_a_slot_is_no_link() -> None:
    report = measured()
    for stage in report.stages:
        stage.slot, stage.node = "node-1", "node-1"
    assert latency_json(report)["links"] == {}
    assert "Links" not in latency_text(report)


def test_what_was_not_measured_yet_is_a_dash_and_no_number() -> None:
    empty = city_report(0, state="running")
    assert latency_json(empty)["sinks"]["alerts"]["p99_ms"] is None
    assert "–" in latency_text(empty)


def test_a_failure_is_said_above_the_figures() -> None:
    failed = replace(measured(), state="failed", error="the join went out")
    assert "the join went out" in latency_text(failed).splitlines()[1]

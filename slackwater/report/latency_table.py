"""Parts of a job's latency: sinks by quantile, stages by part, links by delay.

Each figure that spans two clocks has their error beside it (±). Clocks are compared as in [thesis]
§3.2.2; within one clock the error is 0.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from slackwater.report.render import old_columns, plain_console, say, tabulate
from slackwater.runtime.measure.report import ChannelReport, JobReport, SinkReport, StageReport
from slackwater.runtime.model import format_ns

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
_MS = 1e6


def render_latency(report: JobReport, console: Console) -> None:
    """Print the tables of sinks, stages and links."""
    say(console, Text(f"{report.flow}  {report.state}  {report.elapsed_s:.1f} s", style="bold"))
    if report.error:
        say(console, Text(report.error, style="bold red"))
    sinks = report.sinks
    quantiles = [(name, [_quantile(sink, q) for sink in sinks]) for name, q in QUANTILES.items()]
    columns = [
        ("sink", [sink.name for sink in sinks]),
        ("node", [sink.node for sink in sinks]),
        ("rows", [f"{sink.rows:,}" for sink in sinks]),
        *quantiles,
        ("±", [format_ns(sink.error_ns) for sink in sinks]),
        *old_columns(sinks),
    ]
    tabulate(console, "Sinks (latency: egress − stimulus)", columns)
    parts = [_parts(stage, report.channels) for stage in report.stages]
    stages = [
        ("stage", [stage.name for stage in report.stages]),
        ("node", [stage.node for stage in report.stages]),
        ("network", [_ns(part["network_ms"]) for part in parts]),
        ("±", [_ns(part["network_error_ms"]) for part in parts]),
        ("gate wait", [_ns(part["gate_wait_ms"]) for part in parts]),
        ("queue wait", [_ns(part["queue_wait_ms"]) for part in parts]),
        ("service", [_ns(part["service_ms"]) for part in parts]),
    ]
    tabulate(console, "Stages (mean per event; network: per message)", stages)
    links = _links(report)
    rows = [
        ("link", [link.name for link in links]),
        ("from", [_node_of(report, link.source) for link in links]),
        ("to", [_node_of(report, link.target) for link in links]),
        ("messages", [f"{link.messages:,}" for link in links]),
        ("least", [_ns(_least_ms(link)) for link in links]),
        ("mean", [_ns(_delay_ms(link)) for link in links]),
        ("±", [format_ns(link.error_ns) for link in links]),
    ]
    tabulate(console, "Links (delay of a message)", rows)


def latency_text(report: JobReport) -> str:
    """Return the tables as plain text."""
    written = io.StringIO()
    render_latency(report, plain_console(written))
    return "".join(line.rstrip() + "\n" for line in written.getvalue().splitlines())


def latency_json(report: JobReport) -> dict[str, Any]:
    """Return the figures as plain values, in milliseconds; None if not measured."""
    return {
        "flow": report.flow,
        "state": report.state,
        "elapsed_s": report.elapsed_s,
        "error": report.error,
        "sinks": {
            sink.name: {
                "node": sink.node,
                "rows": sink.rows,
                **{
                    f"{name.replace('.', '_')}_ms": _quantile_ms(sink, q)
                    for name, q in QUANTILES.items()
                },
                "error_ms": sink.error_ns / _MS,
                "old_s": sink.old_s,
            }
            for sink in report.sinks
        },
        "stages": {
            stage.name: {"node": stage.node, **_parts(stage, report.channels)}
            for stage in report.stages
        },
        "links": {
            link.name: {
                "from": _node_of(report, link.source),
                "to": _node_of(report, link.target),
                "messages": link.messages,
                "least_ms": _least_ms(link),
                "mean_ms": _delay_ms(link),
                "error_ms": link.error_ns / _MS,
            }
            for link in _links(report)
        },
    }


def _parts(stage: StageReport, channels: Sequence[ChannelReport]) -> dict[str, float | None]:
    into = [channel for channel in channels if channel.target == stage.name and channel.messages]
    messages, rows = sum(channel.messages for channel in into), stage.rows_in
    return {
        "network_ms": sum(channel.link_ns for channel in into) / messages / _MS if into else None,
        "network_error_ms": max(channel.error_ns for channel in into) / _MS if into else None,
        "gate_wait_ms": stage.gate_wait_ns / rows / _MS if rows else None,
        "queue_wait_ms": stage.queue_wait_ns / rows / _MS if rows else None,
        "service_ms": stage.service_ns / rows / _MS if rows else None,
    }


def _links(report: JobReport) -> list[ChannelReport]:
    # A channel within a slot has no delay.
    slots = {stage.name: stage.slot for stage in report.stages}
    return [
        channel
        for channel in report.channels
        if slots.get(channel.source) != slots.get(channel.target)
    ]


def _delay_ms(channel: ChannelReport) -> float | None:
    return channel.link_ns / channel.messages / _MS if channel.messages else None


def _least_ms(channel: ChannelReport) -> float | None:
    return None if channel.least_link_ns is None else channel.least_link_ns / _MS


def _quantile_ms(sink: SinkReport, q: float) -> float | None:
    return sink.latency.quantile(q) / _MS if sink.latency.count else None


def _quantile(sink: SinkReport, q: float) -> str:
    return _ns(_quantile_ms(sink, q))


def _ns(ms: float | None) -> str:
    return "–" if ms is None else format_ns(ms * _MS)


def _node_of(report: JobReport, stage: str) -> str:
    return next((candidate.node for candidate in report.stages if candidate.name == stage), "–")

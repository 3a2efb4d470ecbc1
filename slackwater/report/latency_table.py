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
    quantiles = [(name, [_quantile(one, q) for one in sinks]) for name, q in QUANTILES.items()]
    columns = [
        ("sink", [one.name for one in sinks]),
        ("node", [one.node for one in sinks]),
        ("rows", [f"{one.rows:,}" for one in sinks]),
        *quantiles,
        ("±", [format_ns(one.error_ns) for one in sinks]),
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
        ("link", [one.name for one in links]),
        ("from", [_node_of(report, one.source) for one in links]),
        ("to", [_node_of(report, one.target) for one in links]),
        ("messages", [f"{one.messages:,}" for one in links]),
        ("least", [_ns(_least_ms(one)) for one in links]),
        ("mean", [_ns(_delay_ms(one)) for one in links]),
        ("±", [format_ns(one.error_ns) for one in links]),
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
            one.name: {
                "node": one.node,
                "rows": one.rows,
                **{
                    f"{name.replace('.', '_')}_ms": _quantile_ms(one, q)
                    for name, q in QUANTILES.items()
                },
                "error_ms": one.error_ns / _MS,
                "old_s": one.old_s,
            }
            for one in report.sinks
        },
        "stages": {
            stage.name: {"node": stage.node, **_parts(stage, report.channels)}
            for stage in report.stages
        },
        "links": {
            one.name: {
                "from": _node_of(report, one.source),
                "to": _node_of(report, one.target),
                "messages": one.messages,
                "least_ms": _least_ms(one),
                "mean_ms": _delay_ms(one),
                "error_ms": one.error_ns / _MS,
            }
            for one in _links(report)
        },
    }


def _parts(stage: StageReport, channels: Sequence[ChannelReport]) -> dict[str, float | None]:
    into = [one for one in channels if one.target == stage.name and one.messages]
    messages, rows = sum(one.messages for one in into), stage.rows_in
    return {
        "network_ms": sum(one.link_ns for one in into) / messages / _MS if into else None,
        "network_error_ms": max(one.error_ns for one in into) / _MS if into else None,
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

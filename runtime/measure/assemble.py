"""One report out of the parts that the slots keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runtime.flow.plan import Plan
from runtime.measure.histogram import LatencyHistogram
from runtime.measure.ledger import ledger_of
from runtime.measure.report import ChannelReport, JobReport, SinkReport, StageReport
from runtime.measure.series import LatencySeries
from runtime.model import Batch


class SinkMeter:
    """Latency of what leaves at one sink. Source: [mace] Def. 3."""

    def __init__(self, name: str, node: str) -> None:
        self.report = SinkReport(name, node, latency=LatencyHistogram(), series=LatencySeries())

    def add(self, batch: Batch, egress_ns: int) -> None:
        """Count rows that have just left."""
        latency_ns = egress_ns - batch.stimulus_time_ns
        self.report.rows += len(batch)
        self.report.latency.add(latency_ns)
        self.report.series.add(batch.stimulus_time_ns, latency_ns)


def merge_channels(parts: Iterable[ChannelReport]) -> list[ChannelReport]:
    """Return one report per channel from its two ends, which each count their side."""
    merged: dict[str, ChannelReport] = {}
    for part in parts:
        whole = merged.setdefault(part.name, ChannelReport(part.name, part.source, part.target))
        whole.rows_sent += part.rows_sent
        whole.rows_received += part.rows_received
        whole.bytes_sent += part.bytes_sent
        whole.messages += part.messages
        whole.link_ns += part.link_ns
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
) -> JobReport:
    """Return the report of a run, stages and channels in the order of the plan."""
    by_name = {stage.name: stage for stage in stages}
    ordered = [by_name[stage.name] for stage in plan.stages if stage.name in by_name]
    merged = {channel.name: channel for channel in merge_channels(channels)}
    carried = [merged[c.name] for c in plan.channels if c.name in merged]
    return JobReport(
        flow=plan.flow,
        state=state,
        host=host,
        nodes=list(nodes),
        elapsed_s=elapsed_s,
        stages=ordered,
        channels=carried,
        sinks=list(sinks),
        ledger=ledger_of(ordered, carried),
        error=error,
        notes=list(notes),
    )

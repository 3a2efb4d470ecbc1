"""What a run measures: latencies, stages, channels, and the ledger that must balance."""

from runtime.measure.histogram import LatencyHistogram
from runtime.measure.ledger import imbalances, ledger_of
from runtime.measure.report import (
    ChannelReport,
    ClockReport,
    JobReport,
    Ledger,
    SinkReport,
    StageReport,
)
from runtime.measure.series import LatencySeries, SeriesBin

__all__ = [
    "ChannelReport",
    "ClockReport",
    "JobReport",
    "LatencyHistogram",
    "LatencySeries",
    "Ledger",
    "SeriesBin",
    "SinkReport",
    "StageReport",
    "imbalances",
    "ledger_of",
]

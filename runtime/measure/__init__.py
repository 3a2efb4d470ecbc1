"""What a run measures: latencies, stages, channels, and the ledger that must balance."""

from runtime.measure.balance import Ledger
from runtime.measure.histogram import LatencyHistogram
from runtime.measure.ledger import imbalances, ledger_of, refuse_imbalance
from runtime.measure.replaced import MovedStage, Replaced
from runtime.measure.report import (
    ChannelReport,
    ClockReport,
    JobReport,
    SinkReport,
    StageReport,
    Standstill,
)
from runtime.measure.series import LatencySeries, SeriesBin
from runtime.measure.standstill import standing, standstills
from runtime.measure.step_report import StepReport
from runtime.measure.tuning import GateTuning, TuningReport
from runtime.measure.tuning_series import GateSpan, TuningSeries, TuningSpan

__all__ = [
    "ChannelReport",
    "ClockReport",
    "GateSpan",
    "GateTuning",
    "JobReport",
    "LatencyHistogram",
    "LatencySeries",
    "Ledger",
    "MovedStage",
    "Replaced",
    "SeriesBin",
    "SinkReport",
    "StageReport",
    "Standstill",
    "StepReport",
    "TuningReport",
    "TuningSeries",
    "TuningSpan",
    "imbalances",
    "ledger_of",
    "refuse_imbalance",
    "standing",
    "standstills",
]

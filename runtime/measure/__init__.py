"""Measurements of a run: latencies, stages, channels, and the ledger, which must balance."""

from slackwater.runtime.measure.balance import Ledger
from slackwater.runtime.measure.histogram import LatencyHistogram
from slackwater.runtime.measure.ledger import imbalances, ledger_of, refuse_imbalance
from slackwater.runtime.measure.replaced import MovedStage, Replaced
from slackwater.runtime.measure.report import (
    ChannelReport,
    ClockReport,
    JobReport,
    SinkReport,
    StageReport,
    Standstill,
)
from slackwater.runtime.measure.series import LatencySeries, SeriesBin
from slackwater.runtime.measure.standstill import standing, standstills
from slackwater.runtime.measure.step_report import StepReport
from slackwater.runtime.measure.tuning import GateTuning, TuningReport
from slackwater.runtime.measure.tuning_series import GateSpan, TuningSeries, TuningSpan

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

"""Write results where they leave: to files, to the user's function, or to memory."""

from slackwater.actors.sinks.memory import CallbackSink, CollectSink
from slackwater.actors.sinks.open import NOBODY, open_sink, print_line
from slackwater.actors.sinks.outputs import (
    callback_sink,
    collect_sink,
    csv_sink,
    jsonl_sink,
    parquet_sink,
    print_sink,
)
from slackwater.actors.sinks.run_fingerprints import input_prints, sink_runs, slots_with_inputs
from slackwater.actors.sinks.sink import Sink, SinkProgress
from slackwater.actors.sinks.slot_sinks import SlotSinks

__all__ = [
    "NOBODY",
    "CallbackSink",
    "CollectSink",
    "Sink",
    "SinkProgress",
    "SlotSinks",
    "callback_sink",
    "collect_sink",
    "csv_sink",
    "input_prints",
    "jsonl_sink",
    "open_sink",
    "parquet_sink",
    "print_line",
    "print_sink",
    "sink_runs",
    "slots_with_inputs",
]

"""Write results where they leave: to files, to the user's function, or to memory."""

from slackwater.actors.sinks.memory import CallbackSink, CollectSink
from slackwater.actors.sinks.outputs import (
    callback_sink,
    collect_sink,
    csv_sink,
    jsonl_sink,
    parquet_sink,
    print_sink,
)
from slackwater.actors.sinks.run_fingerprints import input_prints, sink_runs, slots_with_inputs
from slackwater.actors.sinks.slot_sinks import SlotSinks, print_line

__all__ = [
    "CallbackSink",
    "CollectSink",
    "SlotSinks",
    "callback_sink",
    "collect_sink",
    "csv_sink",
    "input_prints",
    "jsonl_sink",
    "parquet_sink",
    "print_line",
    "print_sink",
    "sink_runs",
    "slots_with_inputs",
]

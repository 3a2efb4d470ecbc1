"""Where results leave: files, the user's function, or memory."""

from actors.sinks.files import FileSink, SinkProgress
from actors.sinks.lock import HasEnded
from actors.sinks.memory import CallbackSink, CollectSink
from actors.sinks.open import NOBODY, Sink, open_sink
from actors.sinks.run_fingerprints import input_prints, sink_runs, slots_with_inputs
from actors.sinks.slot_sinks import SlotSinks

__all__ = [
    "NOBODY",
    "CallbackSink",
    "CollectSink",
    "FileSink",
    "HasEnded",
    "Sink",
    "SinkProgress",
    "SlotSinks",
    "input_prints",
    "open_sink",
    "sink_runs",
    "slots_with_inputs",
]

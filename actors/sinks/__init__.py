"""Where results leave: files, the user's function, or memory."""

from actors.sinks.files import FileSink, Progress
from actors.sinks.known import input_prints, sink_runs, slots_with_inputs
from actors.sinks.lock import HasEnded
from actors.sinks.memory import CallbackSink, CollectSink
from actors.sinks.of_slot import SlotSinks
from actors.sinks.open import NOBODY, Sink, open_sink

__all__ = [
    "NOBODY",
    "CallbackSink",
    "CollectSink",
    "FileSink",
    "HasEnded",
    "Progress",
    "Sink",
    "SlotSinks",
    "input_prints",
    "open_sink",
    "sink_runs",
    "slots_with_inputs",
]

"""Where results leave: files, the user's function, or memory."""

from actors.sinks.files import JsonLinesSink, ParquetSink
from actors.sinks.memory import CallbackSink, CollectSink
from actors.sinks.open import Sink, open_sink

__all__ = ["CallbackSink", "CollectSink", "JsonLinesSink", "ParquetSink", "Sink", "open_sink"]

"""`process`: a custom operator, with an object for each key and timers by event time."""

from slackwater.runtime.operators.process.stream import Processing

__all__ = ["Processing"]

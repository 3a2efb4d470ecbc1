"""`dedupe`: of rows with equal keys that are close in event time only the first."""

from slackwater.runtime.operators.dedupe.stream import Deduping

__all__ = ["Deduping"]

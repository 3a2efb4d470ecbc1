"""`filter`: the rows where a predicate is true."""

from slackwater.runtime.operators.filter.stream import Filtering

__all__ = ["Filtering"]

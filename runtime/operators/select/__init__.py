"""`select` and `drop`: some columns, perhaps under new names."""

from slackwater.runtime.operators.select.stream import Selecting

__all__ = ["Selecting"]

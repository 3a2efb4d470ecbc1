"""`assign`: columns added or replaced, each computed from its row."""

from slackwater.runtime.operators.assign.stream import Assigning

__all__ = ["Assigning"]

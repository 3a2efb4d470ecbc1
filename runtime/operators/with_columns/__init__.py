"""`with_columns`: columns added or replaced, each computed from its row."""

from slackwater.runtime.operators.with_columns.stream import WithColumns

__all__ = ["WithColumns"]

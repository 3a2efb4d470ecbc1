"""`map_rows`: the user's function on a row at a time."""

from slackwater.runtime.operators.map_rows.stream import MappingRows

__all__ = ["MappingRows"]

"""`merge`: several streams of one schema, in event-time order. It keeps no state."""

from slackwater.runtime.operators.merge.stream import FlowMerging, Merging

__all__ = ["FlowMerging", "Merging"]

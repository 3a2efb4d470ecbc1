"""`map_batches`: the user's vectorised function."""

from slackwater.runtime.operators.map_batches.stream import MappingBatches

__all__ = ["MappingBatches"]

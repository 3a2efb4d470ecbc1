"""`map_batches`: the user's vectorised function."""

from runtime.operators.map_batches.stream import MappingBatches

__all__ = ["MappingBatches"]

"""Turn files and memory into Arrow blocks. `runtime` decides what the blocks mean."""

from slackwater.ingest.files import csv, jsonl, parquet
from slackwater.ingest.memory import blocks, table
from slackwater.ingest.ray_blocks import ray_dataset

__all__ = ["blocks", "csv", "jsonl", "parquet", "ray_dataset", "table"]

"""Turn files and memory into Arrow blocks. `runtime` decides what the blocks mean."""

from slackwater.ingest.files import csv, jsonl, parquet
from slackwater.ingest.memory import blocks, table

__all__ = ["blocks", "csv", "jsonl", "parquet", "table"]

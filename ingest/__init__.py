"""Input: files and memory become Arrow blocks. What the blocks mean is decided in `runtime`."""

from slackwater.ingest.files import csv, jsonl, parquet
from slackwater.ingest.memory import blocks, table

__all__ = ["blocks", "csv", "jsonl", "parquet", "table"]

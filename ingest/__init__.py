"""Input: files and memory become Arrow blocks. What the blocks mean is decided in `runtime`."""

from ingest.files import csv, jsonl, parquet
from ingest.memory import blocks, table

__all__ = ["blocks", "csv", "jsonl", "parquet", "table"]

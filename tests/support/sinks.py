"""A folder of results as its writer has it, and as its readers see it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.actors.sinks.files import FileSink
from slackwater.actors.sinks.outputs import FilesOutput
from slackwater.runtime.sinks import Fingerprint, InputPrint, SinkRun

SCHEMA = pa.schema([("n", pa.int64())])
MARKS = Fingerprint(
    flow="f00",
    inputs={"buses": InputPrint("1 file of 9 bytes", "d1")},
    release={"python": "3"},
    form="rows=5",
)
RUN = SinkRun(job="first-1", flow="flow", fingerprint=MARKS)
SECOND = 1_000_000_000


class Clock:
    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


def rows(first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch([np.arange(first, first + count)], schema=SCHEMA)


def opened(output: FilesOutput, run: SinkRun = RUN, **options: Any) -> FileSink:
    return FileSink("out", output, output.path, SCHEMA, run=run, **options)


def write_all(
    output: FilesOutput, *, count: int = 17, batch: int = 3, run: SinkRun = RUN
) -> FileSink:
    sink = opened(output, run)
    for first in range(0, count, batch):
        sink.write(rows(first, min(batch, count - first)))
    sink.close()
    return sink


def seen(path: Path) -> list[int]:
    """Return the rows that readers of *.parquet, *.jsonl and *.csv see, all files whole."""
    found: list[int] = []
    parts = sorted(path.glob("*.*")) if path.is_dir() else [path] if path.exists() else []
    for part in parts:
        if part.name.startswith("."):
            continue
        if part.suffix == ".parquet":
            found += pq.read_table(part)["n"].to_pylist()
        elif part.suffix == ".jsonl":
            text = part.read_text()
            assert text == "" or text.endswith("\n")
            found += [json.loads(line)["n"] for line in text.splitlines()]
        elif part.suffix == ".csv":
            header, *lines = part.read_text().splitlines()
            assert header == "n"
            found += [int(line) for line in lines]
    return found


def shown(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if not path.name.startswith(".")
    }


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / ".slackwater.json").read_text())
    return found

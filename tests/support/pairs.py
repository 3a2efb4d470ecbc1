"""A join of two live sources, whose rows a test compares with those of an undisturbed run."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.recovery.flow import rows_of
from tests.support.endless import HeldInput

__all__ = ["at_least", "pairs"]

ROWS, PER_S = 3_000, 1_000


def pairs(
    sink: sw.connectors.Output,
    *,
    file: Path | None = None,
    over: Path | None = None,
    rows: int = ROWS,
    names: Mapping[str, str] = MappingProxyType({}),
    **options: Any,
) -> sw.Dataflow:
    """A join of two live sources, in three slots; its rows also go to one file.

    Args:
        file: the file.
        over: the last sixth of the rows waits until this file is there, if given.
    """
    flow = sw.Dataflow("pairs", **options)
    times = np.arange(rows) * (1_000_000_000 // PER_S)

    def source(name: str, seed: int) -> sw.Stream:
        rng = np.random.default_rng(seed)
        data = {"ts": times, "key": rng.integers(0, 20, rows), "value": rng.random(rows)}
        table = sw.table(pa.table(data))
        held = table if over is None else HeldInput(table, str(over), rows * 5 // 6)
        named = names.get(name, name)
        return flow.source(named, held, event_time="ts", time_unit="ns", speed=1.0)

    joined = source("left", 1).join(
        source("right", 2), on="key", within="20ms", name=names.get("joined", "joined")
    )
    joined.sink(names.get("out", "out"), sink)
    if file is not None:
        joined.sink(names.get("file", "file"), sw.jsonl_sink(file))
    return flow


def at_least(path: Path, rows: int) -> bool:
    """Return whether a table of `TableOutput` has so many rows."""
    try:
        return len(rows_of(path)) >= rows
    except sqlite3.OperationalError:  # it is not there yet
        return False

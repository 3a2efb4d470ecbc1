"""A user's input that hands over small blocks, beside the same rows in large ones.

```
poll ──▶ 1,000 rows, 1,000 rows, … ──▶ put together while they wait ──▶ filter ──▶ sink
poll ──▶ 65,536 rows, …            ──▶                              ──▶ filter ──▶ sink
```

The input has its rows in the page cache: all that it does is to slice them. So what differs is what
a block costs between the thread that reads ahead and the slot: a copy too, unless its input says
that blocks stay where they are.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.running import ONE_SLOT, TIMEOUT_S
from benchmarks.frame import Claim, Options, Result, Spread, check
from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput

ROWS, TURNS = 40_000_000, 11
SMALL, LARGE = 1_000, 65_536
KEPT = 1_000
"""The filter passes one row of each thousand."""
KINDS = ((SMALL, False), (SMALL, True), (LARGE, False), (LARGE, True))
"""(rows of a block, whether blocks stay where they are)"""
SHARE = 0.5
SCHEMA = pa.schema({"ts": pa.int64(), "value": pa.int64()})


@dataclass(frozen=True)
class Blocks:
    """Rows of a file, in blocks of a size; a custom input, so a thread reads it.

    Attributes:
        path: of a file with the rows, which is mapped into memory.
        size: of a block.
        blocks_stay: whether it says so; else each block is copied before the next poll.
    """

    path: str
    size: int
    blocks_stay: bool = False

    def describe(self) -> str:
        """Return the size in words."""
        return f"blocks of {self.size:,} rows, {'that stay' if self.blocks_stay else 'copied'}"

    def schema(self) -> pa.Schema:
        """Return its columns."""
        return SCHEMA

    def open(self) -> BlocksReader:
        """Map the rows."""
        with pa.memory_map(self.path) as file:
            return BlocksReader(pa.ipc.open_file(file).get_batch(0), self.size)


class BlocksReader:
    """Hands over one block at a poll."""

    def __init__(self, rows: pa.RecordBatch, size: int) -> None:
        self._rows, self._size, self._next = rows, size, 0

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        """Return the next block."""
        if self._next >= self._rows.num_rows:
            return END_OF_INPUT
        block = self._rows.slice(self._next, self._size)
        self._next += self._size
        return block

    def close(self) -> None:
        """Nothing is open."""


def numbers_of(rows: int) -> npt.NDArray[np.int64]:
    """Return the rows' numbers, which are their event times in ms, from 2026 on."""
    return np.arange(rows, dtype=np.int64) + 1_767_225_600_000


def run(options: Options) -> Result:
    """Measure both sizes of blocks, in turns."""
    rows, turns = (ROWS // 8, 3) if options.quick else (ROWS, TURNS)
    result = Result(
        f"{rows:,} rows of two whole numbers, filtered to one in {KEPT:,}, one slot, "
        f"{turns} turns after one to warm up",
        ["rows of a block", "blocks stay", "M events/s"],
    )
    expected = numbers_of(rows)
    values = expected % KEPT
    rates: dict[tuple[int, bool], list[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder, sw.Cluster.local(nodes=1) as cluster:
        path = str(Path(folder) / "rows")
        with pa.ipc.new_file(path, SCHEMA) as file:
            file.write(pa.record_batch({"ts": expected, "value": values}, schema=SCHEMA))
        expected = expected[values == 0]
        for turn in range(turns + 1):
            for size, stay in KINDS if turn % 2 else reversed(KINDS):
                rate = _rate(cluster, Blocks(path, size, stay), expected)
                if turn:
                    rates[size, stay].append(rate)
    for (size, stay), own in rates.items():
        result.rows.append([f"{size:,}", "yes" if stay else "no", Spread.of(own)])
    for stay in (False, True):
        small, large = rates[SMALL, stay], rates[LARGE, stay]
        share = Spread.of([one / other for one, other in zip(small, large, strict=True)])
        name = "blocks of 1,000 / of 65,536: events/s" + (", blocks stay" if stay else "")
        result.claims.append(Claim(name, share.median, ">=", SHARE))
        result.figures[name] = share
    result.notes.append("events / the job's elapsed time; each turn's rows compared with NumPy's")
    return result


def _rate(cluster: sw.Cluster, blocks: Blocks, expected: npt.NDArray[np.int64]) -> float:
    flow = sw.Dataflow("small-blocks")
    rows = flow.source("rows", blocks, event_time="ts", time_unit="ms")
    rows.filter(sw.col("value") == 0).sink("kept", sw.collect_sink())
    job = cluster.submit(flow, placement=ONE_SLOT)
    try:
        report = job.wait(timeout=TIMEOUT_S)
        found = job.result("kept")
    finally:
        job.close()
    check(report.ledger.is_balanced, f"the ledger does not balance: {report.ledger}")
    check(np.array_equal(found["ts"].to_numpy(), expected), f"{blocks.describe()}: other rows")
    return report.ledger.entered / report.elapsed_s / 1e6

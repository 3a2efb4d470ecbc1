"""The flow of `recovery-peers` in Bytewax, one worker: a program for an interpreter that has it.

`python -m benchmarks.engine.recovery.peer_bytewax FOLDER RATE ROWS SINK` writes to FOLDER/out,
and goes on from the recovery store in FOLDER/store, which it makes. SINK is `append`, a sink that
does not know how far it is, or `cut`, Bytewax's own sink of a file, which it cuts as it goes on.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

import bytewax.operators as op
from bytewax.connectors.files import FileSink
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.run import cli_main

from benchmarks.engine.live_poll_feed import Feed

INTERVAL = timedelta(seconds=1)

Place = tuple[int, int]
"""When row 0 was due, in ns, and the number of the next row."""
Keyed = tuple[str, tuple[int, int]]


class FeedPartition(StatefulSourcePartition[Keyed, Place]):  # type: ignore[misc]
    """Hands over rows that are due, from a position on."""

    def __init__(self, rate: int, rows: int, place: Place | None) -> None:
        self._start_ns, first = place or (time.time_ns() // 1_000 * 1_000, 0)
        self._feed = Feed(self._start_ns, rate=rate, rows=rows, first=first)

    def next_batch(self) -> list[Keyed]:
        """Return the rows that are due."""
        if self._feed.is_over:
            raise StopIteration
        return [(key, (number, value)) for number, key, value, _ in self._feed.due()]

    def next_awake(self) -> datetime | None:
        """Return when the next row is due; None at the end."""
        if self._feed.is_over:
            return None
        return datetime.now(UTC) + timedelta(seconds=self._feed.rest_s())

    def snapshot(self) -> Place:
        """Return the position."""
        return self._start_ns, self._feed.next_number


class FeedSource(FixedPartitionedSource[Keyed, Place]):  # type: ignore[misc]
    """Source of one feed with positions."""

    def __init__(self, rate: int, rows: int) -> None:
        self._rate, self._rows = rate, rows

    def list_parts(self) -> list[str]:
        """Return the name of the only partition."""
        return ["feed"]

    def build_part(self, _step: str, _part: str, place: Place | None) -> FeedPartition:
        """Return the partition, from a position on."""
        return FeedPartition(self._rate, self._rows, place)


class AppendPartition(StatelessSinkPartition[tuple[str, str]]):  # type: ignore[misc]
    """Appends lines to a file."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write_batch(self, items: list[tuple[str, str]]) -> None:
        """Write lines."""
        self._file.writelines(f"{line}\n" for _, line in items)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class AppendSink(DynamicSink[tuple[str, str]]):  # type: ignore[misc]
    """Sink of one worker into a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def build(self, _step: str, _worker: int, _workers: int) -> AppendPartition:
        """Return the only partition."""
        return AppendPartition(self._path.open("a", encoding="ascii"))


def add(total: int | None, row: tuple[int, int]) -> tuple[int, tuple[int, int]]:
    """Return the new total of a key, and the result of a row."""
    number, value = row
    total = (total or 0) + value
    return total, (number, total)


def line_of(keyed: Keyed) -> tuple[str, str]:
    """Return a result as a line of 32 bytes, with its end."""
    _, (number, total) = keyed
    return "out", f"{number:010d} {total:020d}"


def main() -> None:
    """Run the flow to its end, from its store on."""
    folder, rate, rows = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    path, store = folder / "out" / "lines", folder / "store"
    if not store.exists():
        store.mkdir()
        init_db_dir(store, 1)
    flow = Dataflow("totals")
    keyed = op.input("rows", flow, FeedSource(rate, rows))
    totals = op.stateful_map("total", keyed, add)
    lines = op.map("line", totals, line_of)
    op.output("out", lines, AppendSink(path) if sys.argv[4] == "append" else FileSink(path))
    cli_main(flow, epoch_interval=INTERVAL, recovery_config=RecoveryConfig(store, timedelta(0)))


if __name__ == "__main__":
    main()

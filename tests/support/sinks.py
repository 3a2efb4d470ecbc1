"""A folder of results as its writer has it, and as its readers see it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.actors.sinks.slot_sinks import NOBODY, SlotSinks, print_line
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.schedule import Egress, SlotResults, carry_out
from slackwater.runtime.schedule.results import SinkAction
from slackwater.runtime.sinks.fingerprint import Fingerprint, InputPrint, SinkRun
from slackwater.runtime.sinks.output import HasEnded, Output, SinkProgress

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


class Rows:
    """Rows of a sink in Arrow's form, where a slot has a `Batch`."""

    marks = None

    def __init__(self, rows: pa.RecordBatch, event_time_ns: Int64Array | None = None) -> None:
        self.rows = rows
        self.event_time_ns = self.stimulus_time_ns = (
            np.zeros(len(rows), np.int64) if event_time_ns is None else event_time_ns
        )

    def __len__(self) -> int:
        return len(self.rows)

    def slice(self, start: int, stop: int) -> Rows:
        return Rows(self.rows.slice(start, stop - start), self.event_time_ns[start:stop])


class AsTheyAre:
    """Makes Arrow rows of `Rows`."""

    def of(self, batch: Any) -> pa.RecordBatch:
        return batch.rows


class Checkpoint(NamedTuple):
    """What a checkpoint has of one sink; nothing yet, as it stands at the start of a job."""

    results: Any = None
    at: bytes = b""
    next_row: int = 0
    number: int = 0


class Driven:
    """An open sink, driven as a slot drives its sinks."""

    def __init__(
        self,
        output: Output,
        schema: pa.Schema = SCHEMA,
        *,
        name: str = "out",
        run: SinkRun = NOBODY,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        has_ended: HasEnded = lambda _: False,
        show: Callable[[str], None] = print_line,
        keeps_positions: bool = False,
        checkpoint: Checkpoint | None = None,
        holds: bool = False,
        pause: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._name = name
        self._sinks = SlotSinks(clock_ns=clock_ns, show=show, pause=pause)
        self._results = SlotResults({name: output.traits}, holds=[name] if holds else [])
        self._released = 0 if checkpoint is None else checkpoint.number
        self._has_begun = False
        if checkpoint is not None and checkpoint.results is not None:
            restore(self._results, from_plain(checkpoint.results))
        self._sinks.add(
            name,
            output,
            schema,
            run=run,
            has_ended=has_ended,
            keeps_positions=keeps_positions or checkpoint is not None,
            at=None if checkpoint is None else checkpoint.at,
        )
        if output.traits.opens_early:
            self._sinks._sinks[name].rows = cast(Any, AsTheyAre())

    def begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._results.resumes(self._sinks.begin())
            if not self._results.holds:
                self._sinks._sinks[self._name].rows = cast(Any, AsTheyAre())
            self.complete(self._released)

    def write(self, rows: pa.RecordBatch, event_time_ns: Int64Array | None = None) -> None:
        """Write rows, cut where a part is full."""
        self.begin()
        batch = cast(Any, Rows(rows, event_time_ns))
        if self._results.holds:  # a checkpoint contains them
            numbers = {name: rows[name].to_numpy() for name in rows.schema.names}
            times_ns = batch.event_time_ns
            batch = Batch(event_time_ns=times_ns, stimulus_time_ns=times_ns, columns=numbers)
        self._do(lambda: self._results.leaves(Egress(self._name, batch, False)))

    def checkpoint(self, number: int = 1) -> Checkpoint:
        """Return what a checkpoint has of the sink now."""
        self.begin()
        self._results.cut(number)
        results = to_plain(save(self._results), where="results")
        at = self._sinks.positions().get(self._name, b"")
        return Checkpoint(results, at, self._results.next_ordinal(self._name), number)

    def complete(self, number: int) -> None:
        """Let rows leave that a complete checkpoint has."""
        self._do(lambda: self._results.complete(number))

    @property
    def due_ns(self) -> int | None:
        return self._results.due_ns

    def publish_due(self) -> None:
        self._do(lambda: self._results.due(self._sinks.clock_ns()))

    def close(self, state: str = "done") -> None:
        self.begin()
        self._do(lambda: self._results.ends(state))

    def abort(self, error: str) -> None:
        self._carry_out(self._results.ends("failed", error))

    def leave(self) -> None:
        self._sinks.leave()

    @property
    def skipped(self) -> int:
        """Rows that an earlier run had committed."""
        return self._results.reports()[0].already_committed

    @property
    def sink(self) -> Any:
        return self._sinks._sinks[self._name].sink

    @property
    def progress(self) -> SinkProgress:
        progress: SinkProgress = self.sink.progress()
        return progress

    def _do(self, decide: Callable[[], list[SinkAction]]) -> None:
        try:
            self._carry_out(decide())
        except SlackwaterError as problem:
            self.abort(str(problem))
            raise

    def _carry_out(self, actions: list[SinkAction]) -> None:
        carry_out(actions, self._results, self._sinks, lambda: 0)


def rows(first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch([np.arange(first, first + count)], schema=SCHEMA)


def opened(output: Output, run: SinkRun = RUN, **options: Any) -> Driven:
    return Driven(output, run=run, **options)


def write_all(output: Output, *, count: int = 17, batch: int = 3, run: SinkRun = RUN) -> Driven:
    sink = opened(output, run)
    for first in range(0, count, batch):
        sink.write(rows(first, min(batch, count - first)))
    sink.close()
    return sink


def write_row_by_row(output: Output, numbers: Sequence[int]) -> None:
    sink = opened(output)
    for number in numbers:
        sink.write(rows(number, 1))
    sink.close()


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

"""A sink by itself, in processes that are killed at a given operation or meet a full disk.

As a program it takes an order a line and answers each: it has one thread, so that it may fork,
and its parent can have readers that poll meanwhile.
"""

from __future__ import annotations

import json
import mmap
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from benchmarks.engine.sinks.killed import killed_at
from slackwater.actors.sinks.outputs import FilesOutput, jsonl_sink, parquet_sink
from slackwater.actors.sinks.slot_sinks import SlotSinks
from slackwater.runtime.errors import SinkError
from slackwater.runtime.model.batch import batch_of
from slackwater.runtime.schedule import Egress, SlotResults, carry_out
from slackwater.runtime.schedule.results import SinkAction
from slackwater.runtime.sinks.fingerprint import Fingerprint, SinkRun

ROWS, BATCH, PART_ROWS = 60, 3, 8
KINDS = ("jsonl", "parquet", "every")
SCHEMA = pa.schema([("n", pa.int64())])
RUN = SinkRun(
    job="sink-kill", flow="sink-kill", fingerprint=Fingerprint(flow="f", inputs={}, release={})
)
NEVER = 1 << 40


@dataclass(frozen=True)
class Order:
    """Write `ROWS` rows to a folder, and die before the n-th operation on files.

    `most_bytes` is a quota: of each file; None: none.
    """

    kind: str
    out: str
    number: int = NEVER
    most_bytes: int | None = None


@dataclass(frozen=True)
class Answer:
    """What became of it: whether it died, the rows it had written by then, its error if any."""

    died: bool
    written: int
    error: str


class Alone:
    """The process that carries out orders."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.engine.sinks.alone"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def do(self, order: Order) -> Answer:
        """Have an order carried out."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asdict(order)), file=self._process.stdin, flush=True)
        return Answer(**json.loads(self._process.stdout.readline()))


def output_of(kind: str, out: Path) -> FilesOutput:
    """Return an output by its kind."""
    if kind == "every":
        return parquet_sink(out, rows=PART_ROWS, every="1ms", resume=True)
    of = jsonl_sink if kind == "jsonl" else parquet_sink
    return of(out, rows=PART_ROWS, resume=True)


def _carry_out(order: Order) -> Answer:
    with mmap.mmap(-1, 8 + 4_096) as shared:  # rows written; then an error

        def write() -> None:
            if order.most_bytes is not None:
                quota = order.most_bytes
                resource.setrlimit(resource.RLIMIT_FSIZE, (quota, quota))
            try:
                output = output_of(order.kind, Path(order.out))
                sinks, results = SlotSinks(), SlotResults({"out": output.traits})

                def do(actions: list[SinkAction]) -> None:
                    carry_out(actions, results, sinks, sinks.clock_ns)

                sinks.add("out", output, SCHEMA, run=RUN)
                results.resumes(sinks.begin())
                for first in range(0, ROWS, BATCH):
                    do(results.due(sinks.clock_ns()))
                    numbers = list(range(first, first + BATCH))
                    do(results.leaves(Egress("out", batch_of(numbers, {"n": numbers}), False)))
                    shared[:8] = (first + BATCH).to_bytes(8)
                do(results.ends("done"))
            except SinkError as problem:
                shared[8:] = str(problem).encode()[:4_096].ljust(4_096, b"\0")

        died = killed_at(order.number, write, under=order.out)
        error = shared[8:].rstrip(b"\0").decode(errors="replace")
        return Answer(died, int.from_bytes(shared[:8]), error)


def main() -> None:
    """Carry out the orders that come."""
    for line in sys.stdin:
        answer = _carry_out(Order(**json.loads(line)))
        sys.stdout.write(json.dumps(asdict(answer)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""An input of one's own: the lines of a log, followed until it says that it is over.

    python -m examples.own_input

docs/extending.md goes through it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import slackwater as sw

MOST_ROWS = 1_000


@dataclass(frozen=True)
class TicketLog:
    """A file to which another program appends lines: `seconds bus euros`, and `end` at last."""

    path: str

    def describe(self) -> str:
        """Return what `explain` says of it."""
        return f"tickets of {os.path.basename(self.path)}"

    def schema(self) -> pa.Schema:
        """Return the columns of its rows."""
        return pa.schema([("ts", pa.int64()), ("bus", pa.string()), ("euros", pa.float64())])

    def open(self) -> TicketReader:
        """Open it where the source runs."""
        return TicketReader(self.path, self.schema())


class TicketReader:
    """Hands over the lines that have been written since the last time."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._file = open(path, encoding="utf-8")  # noqa: SIM115 - `close` does
        self._schema = schema
        self._begun = ""  # what there is of a line that is not whole yet
        self._is_over = False

    def poll(self) -> pa.RecordBatch | sw.connectors.EndOfInput | None:
        """Return some rows, None when none are there now, or END_OF_INPUT."""
        rows = [self._row(line) for line in self._lines()]
        if rows:
            return pa.RecordBatch.from_pylist(rows, schema=self._schema)
        return sw.connectors.END_OF_INPUT if self._is_over else None

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _lines(self) -> Iterator[str]:
        for _ in range(MOST_ROWS):
            self._begun += self._file.readline()
            if self._is_over or not self._begun.endswith("\n"):
                return
            line, self._begun = self._begun.strip(), ""
            if line == "end":
                self._is_over = True
                return
            yield line

    def _row(self, line: str) -> dict[str, Any]:
        seconds, bus, euros = line.split()
        return {"ts": int(seconds), "bus": bus, "euros": float(euros)}


def flow(path: str) -> sw.Dataflow:
    """Return the whole flow: what each bus takes in ten seconds."""
    made = sw.Dataflow("takings")
    tickets = made.source("tickets", TicketLog(path), event_time="ts", time_unit="s")
    takings = tickets.key_by("bus").aggregate(window=sw.tumbling("10s"), euros=sw.sum("euros"))
    takings.sink("out", sw.collect_sink())
    return made


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "tickets.log")
        with open(log, "w", encoding="utf-8") as file:
            file.write("1 7 2.5\n3 12 3.0\n8 7 2.5\n14 7 4.0\nend\n")
        job = sw.Simulation().submit(flow(log))
        job.wait()
        for row in job.result("out").to_pylist():
            print(row)

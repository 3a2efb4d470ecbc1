"""Outputs as users write them: they note what is done to them, print, and raise where told to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import slackwater as sw


@dataclass
class Noting(sw.connectors.Output):
    """Notes each call; raises in the method named by `fails_in`."""

    fails_in: str = ""
    problem: BaseException | None = None
    calls: list[tuple[str, Any]] = field(default_factory=list)
    traits: sw.connectors.SinkTraits = field(default_factory=sw.connectors.SinkTraits)
    last_ordinal: Any = -1

    def describe(self) -> str:
        self.note("describe")
        return "notes of my own"

    def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> NotingSink:
        self.note("open", (schema.names, context.sink))
        return NotingSink(self)

    def note(self, method: str, what: Any = None) -> None:
        if method != "describe":
            self.calls.append((method, what))
        if method == self.fails_in:
            raise self.problem or ValueError(f"no {method} today")

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.calls]


class NotingSink(sw.connectors.Sink):
    def __init__(self, output: Noting) -> None:
        self._output = output

    def last_ordinal(self) -> int:
        last_ordinal: int = self._output.last_ordinal
        return last_ordinal

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:
        self._output.note("write", {"first": first_ordinal, **rows.to_pydict()})

    def end(self) -> None:
        self._output.note("end")

    def flush(self) -> None:
        self._output.note("flush")

    def commit(self) -> None:
        self._output.note("commit")

    def close(self) -> None:
        self._output.note("close")

    def abort(self, error: str) -> None:
        self._output.note("abort", error)


class Prints(sw.connectors.Output):
    """Prints the rows it gets; to be sent to a node."""

    def describe(self) -> str:
        return "what I print"

    def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> PrintsSink:
        print("opened for", context.sink, schema.names)  # noqa: T201 - what the test is about
        return PrintsSink()


class PrintsSink(sw.connectors.Sink):
    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:
        assert first_ordinal >= 0
        if 13 in rows["t"].to_pylist():
            raise ValueError("13 brings bad luck")

    def close(self) -> None:
        raise AssertionError("it fails before")

    def abort(self, error: str) -> None:
        print("aborted:", error.splitlines()[0])  # noqa: T201 - as above

"""Outputs as users write them: they note what is done to them, print, and raise where told to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import slackwater as sw


@dataclass
class Noting:
    """Notes each call; raises in the method named by `fails_in`."""

    fails_in: str = ""
    problem: BaseException | None = None
    calls: list[tuple[str, Any]] = field(default_factory=list)

    def describe(self) -> str:
        self.note("describe")
        return "notes of my own"

    def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> NotingWriter:
        self.note("open", (schema.names, context.sink))
        return NotingWriter(self)

    def note(self, method: str, what: Any = None) -> None:
        if method != "describe":
            self.calls.append((method, what))
        if method == self.fails_in:
            raise self.problem or ValueError(f"no {method} today")

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.calls]


class NotingWriter:
    def __init__(self, output: Noting) -> None:
        self._output = output

    def write(self, rows: pa.RecordBatch) -> None:
        self._output.note("write", rows.to_pydict())

    def close(self) -> None:
        self._output.note("close")

    def abort(self, error: str) -> None:
        self._output.note("abort", error)


class Prints:
    """Prints the rows it gets; to be sent to a node."""

    def describe(self) -> str:
        return "what I print"

    def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> PrintsWriter:
        print("opened for", context.sink, schema.names)  # noqa: T201 - what the test is about
        return PrintsWriter()


class PrintsWriter:
    def write(self, rows: pa.RecordBatch) -> None:
        if 13 in rows["t"].to_pylist():
            raise ValueError("13 brings bad luck")

    def close(self) -> None:
        raise AssertionError("it fails before")

    def abort(self, error: str) -> None:
        print("aborted:", error.splitlines()[0])  # noqa: T201 - as above

"""Sources over rows in memory, and what comes out of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from slackwater import ingest
from slackwater.runtime.model import Message
from slackwater.runtime.model.schema import inside_schema
from slackwater.runtime.sources import END_OF_INPUT, SourceMachine, SourceSpec

NOW = 1_000


def machine(data: Any, *, start_ns: int = 0, needed: set[str] | None = None, **spec: Any) -> Any:
    """A source named "s" over {column: values} or an input, with event time in "t"."""
    given = ingest.table(data) if isinstance(data, (dict, pa.Table)) else data
    return SourceMachine(
        "s",
        SourceSpec(input=given, **{"event_time": "t", **spec}),
        inside_schema(given.schema()),
        writer_id=3,
        start_ns=start_ns,
        needed=None if needed is None else frozenset(needed),
    )


def next_due_ns(source: SourceMachine, now_ns: int) -> int | None:
    """Read if need be; return when the next take gives something, at most `now_ns` for now."""
    if source.is_over or (source.is_unread and not source.read(now_ns)):
        if source.without_rows(now_ns) is not None:
            return now_ns
        return None if source.is_over else source.wait_ends_ns
    known_ns = source.due_ns
    return now_ns if known_ns is None or not source.is_paced else known_ns


def drain(
    source: SourceMachine, *, now_ns: int = NOW, max_rows: int | None = None
) -> list[Message]:
    """Take until there is nothing, or the end."""
    taken = []
    while (message := source.take(now_ns, max_rows=max_rows)) is not None:
        taken.append(message)
    return taken


def times(messages: list[Message]) -> list[int]:
    return [
        int(time)
        for message in messages
        if message.batch is not None
        for time in message.batch.event_time_ns
    ]


class Stuttering:
    """An input that answers what it is told, in order, then the end."""

    def __init__(self, *answers: Any) -> None:
        self.answers = [*answers, END_OF_INPUT]
        self.closed = 0

    def describe(self) -> str:
        return "stuttering"

    def schema(self) -> pa.Schema:
        return pa.schema([("t", pa.int64())])

    def open(self) -> Stuttering:
        return self

    def poll(self) -> Any:
        return self.answers.pop(0)

    def close(self) -> None:
        self.closed += 1


def block(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)

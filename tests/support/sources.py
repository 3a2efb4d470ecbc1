"""Sources over rows in memory, and what comes out of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from slackwater.ingest import memory
from slackwater.runtime.model import END_NS, Message
from slackwater.runtime.model.schema import inside_schema
from slackwater.runtime.schedule.node import Handed
from slackwater.runtime.schedule.source_node import SourceNode
from slackwater.runtime.sources.spec import END_OF_INPUT, SourceSpec

NOW = 1_000


def machine(data: Any, *, start_ns: int = 0, needed: set[str] | None = None, **spec: Any) -> Any:
    """A source named "s" over {column: values} or an input, with event time in "t"."""
    given = memory.table(data) if isinstance(data, (dict, pa.Table)) else data
    return SourceNode(
        "s",
        SourceSpec(input=given, **{"event_time": "t", **spec}),
        inside_schema(given.schema()),
        writer_id=3,
        start_ns=start_ns,
        needed=None if needed is None else frozenset(needed),
    )


def next_due_ns(source: SourceNode, now_ns: int) -> int | None:
    """Read if need be; return when the next take gives something, at most `now_ns` for now."""
    if source.is_over or (source.is_unread and not source.read(now_ns)):
        if not source.is_over and source.leaves_without_rows(now_ns):
            return now_ns
        return None if source.is_over else source.wait_ends_ns
    known_ns = source.due_ns
    return now_ns if known_ns is None or not source.is_paced else known_ns


def handed(source: SourceNode, now_ns: int, *, max_rows: int | None = None) -> Handed:
    """Read if need be, and hand over what is due now."""
    most = END_NS if max_rows is None else max_rows
    if source.is_paced and source.is_unread:
        read = source.work(now_ns, max_rows=most)
        if read.progress is not None or source.is_unread:
            return read
    return source.work(now_ns, max_rows=most)


def take(source: SourceNode, now_ns: int, *, max_rows: int | None = None) -> Any:
    """As `handed`, as a message; None: nothing is due."""
    rows, progress = handed(source, now_ns, max_rows=max_rows)[:2]
    return None if progress is None else Message(rows, progress)


def drain(source: SourceNode, *, now_ns: int = NOW, max_rows: int | None = None) -> list[Message]:
    """Take until there is nothing, or the end."""
    taken = []
    while (message := take(source, now_ns, max_rows=max_rows)) is not None:
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

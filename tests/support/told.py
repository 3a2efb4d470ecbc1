"""Messages and reads that say how far a stream is with just their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slackwater.runtime.model import START_NS, Arrived, Batch, GateRead, Message, Progress, ReadTag


def message_of(
    batch: Batch | None,
    promise_ns: int,
    stimulus_ns: int = 0,
    tag: ReadTag | None = None,
    arrived: Arrived | None = None,
) -> Message:
    """A message whose rows are the first of its stream."""
    progress = Progress.after(batch, promise_ns, stimulus_ns).with_arrived(arrived)
    return Message(batch, progress, tag)


def gate_read(
    ports: Sequence[Batch | None],
    late: Sequence[Batch | None],
    watermark_ns: int,
    stimulus_ns: int,
    frontier_ns: int,
    arrived: Arrived | None = None,
    newest_ns: int = START_NS,
) -> GateRead:
    """A read of a gate."""
    progress = Progress(frontier_ns, stimulus_ns, newest_ns, arrived)
    return GateRead(ports, late, watermark_ns, progress)


def put(
    gate: Any,
    writer: int,
    batch: Batch | None,
    *,
    promise_ns: int,
    promise_stimulus_ns: int = 0,
    **more: Any,
) -> None:
    """Insert rows of a writer and its promise into a gate."""
    gate.insert(writer, batch, Progress.after(batch, promise_ns, promise_stimulus_ns), **more)

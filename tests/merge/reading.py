"""A gate's rows as the events of the transcription, each with the flags that it was read with."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.runtime.merge import SlackGate
from slackwater.runtime.model import Batch, batch_of
from tests.merge.literal_ssg import Event, Read
from tests.support.told import put


def batch_of_events(events: Sequence[Event]) -> Batch:
    return batch_of(
        [event.ts for event in events],
        {
            "writer": [event.writer for event in events],
            "number": [event.number for event in events],
        },
    )


def events_of(batch: Batch | None) -> list[Event]:
    if batch is None:
        return []
    columns = (batch.event_time_ns, batch.columns["writer"], batch.columns["number"])
    return [Event(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def insert(gate: SlackGate, events: Sequence[Event]) -> None:
    """Insert events of one writer; as a source in order does, it promises its last time."""
    put(gate, events[0].writer, batch_of_events(events), promise_ns=events[-1].ts)


def read(gate: SlackGate, reader: int = 0, *, limit: int | None = None) -> list[Read] | None:
    """Read once; None where the gate says so.

    A gate counts ready rows rather than flag each. Rows leave in order, and what is ready is a
    prefix of the order: so the first ones that were counted as ready are the ready ones.
    """
    counts = gate.counts(reader)
    ready, late_ready = counts.ready, counts.late_ready
    released = gate.read(reader, limit=limit)
    if released is None:
        return None
    late, on_time = [
        # Every port in order, and over all ports by (time, port, writer): here that is by event.
        sorted(event for batch in batches for event in _in_order(events_of(batch)))
        for batches in (released.late, released.ports)
    ]
    late_ready, ready = counts.late_ready - late_ready, counts.ready - ready
    return [Read(event, n >= late_ready, is_late=True) for n, event in enumerate(late)] + [
        Read(event, n >= ready, is_late=False) for n, event in enumerate(on_time)
    ]


def read_all(gate: SlackGate, reader: int = 0, *, limit: int | None = None) -> list[Read]:
    """Read until there is nothing."""
    found: list[Read] = []
    while (some := read(gate, reader, limit=limit)) is not None:
        found += some
    return found


def _in_order(events: list[Event]) -> list[Event]:
    assert events == sorted(events)
    return events

"""An operator of one's own: how long each bus stood, and a row for one that is not heard of.

    python -m examples.own_operator

docs/extending.md goes through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import slackwater as sw

SECOND = 1_000_000_000
SILENT_NS = 60 * SECOND


class Stops:
    """One bus: it stands while its speed is 0, and is lost when it says nothing for a minute."""

    def __init__(self) -> None:
        self.stands_since_ns: int | None = None
        self.due_ns: int | None = None

    def on_rows(self, bus: str, rows: Any) -> list[dict[str, Any]]:
        """Take what the bus has said at one time; return its stop, if that has just ended."""
        now_ns: int = rows.event_time_ns
        self.due_ns = now_ns + SILENT_NS
        if all(row["speed"] == 0 for row in rows):
            if self.stands_since_ns is None:
                self.stands_since_ns = now_ns
            return []
        since_ns, self.stands_since_ns = self.stands_since_ns, None
        if since_ns is None:
            return []
        return [{"bus": bus, "what": "stood", "seconds": (now_ns - since_ns) / SECOND}]

    def on_time(self, bus: str, now_ns: int) -> list[dict[str, Any]]:  # noqa: ARG002 - its time
        """Say that nothing has come for a minute."""
        return [{"bus": bus, "what": "lost", "seconds": SILENT_NS / SECOND}]


def stops(buses: sw.Stream) -> sw.Stream:
    """Return the stops of all buses, each once: what comes twice counts once."""
    return (
        buses.dedupe("bus", within="1s", name="once")
        .key_by("bus")
        .process(
            Stops,
            {"bus": "string", "what": "string", "seconds": "float64"},
            within="2m",
            replicas=2,
            name="stops",
        )
    )


def rows() -> pa.Table:
    """Two buses: 7 stands for 40 s, and is not heard of any more; of 12 one row came twice."""
    said: Sequence[tuple[int, str, float]] = [
        (0, "7", 8.0), (0, "12", 5.0), (10, "7", 0.0), (10, "12", 5.0), (10, "12", 5.0),
        (30, "7", 0.0), (30, "12", 0.0), (50, "7", 6.0), (60, "12", 4.0), (120, "12", 4.0),
        (180, "12", 4.0),
    ]  # fmt: skip
    seconds, buses, speeds = zip(*said, strict=True)
    return pa.table({"ts": seconds, "bus": buses, "speed": speeds})


def flow() -> sw.Dataflow:
    """Return the whole flow."""
    made = sw.Dataflow("stops")
    buses = made.source("buses", sw.table(rows()), event_time="ts", time_unit="s")
    made.merge(stops(buses), name="ordered").sink("out", sw.collect_sink())
    return made


if __name__ == "__main__":
    job = sw.Simulation(nodes=3).submit(flow())
    job.wait()
    for row in job.result("out").to_pylist():
        print(row)

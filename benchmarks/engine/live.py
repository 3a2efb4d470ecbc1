"""Inputs as a user would write them: rows as the clock reaches them, and one that has nothing.

They are read in threads of their own (`actors/slot/read_ahead.py`), since a `poll` may wait.
"""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.workload import DELAY_OVER, FLOW_OVER, WITHIN, Mapped
from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput

__all__ = ["Live", "Silent", "live_join_flow", "name_thread"]

REST_S = 0.001
"""How long a poll sleeps at least if nothing is due, as one of a queue or of a device would."""
MOST_S = 0.1
"""And at most: then it returns with nothing, so that the job can end."""
_PR_SET_NAME = 15


def name_thread(name: str) -> None:
    """Give the thread that calls a name that the kernel knows, of at most 15 letters."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


@dataclass(frozen=True)
class Live:
    """The rows of a file, each handed over once the clock has reached its `arrival`.

    Attributes:
        path: as `workload.write` wrote it.
        start_ns: by `time.time_ns`, when arrival 0 is due.
    """

    path: str
    start_ns: int

    def describe(self) -> str:
        """Return its path."""
        return f"live, from {self.path}"

    def schema(self) -> pa.Schema:
        """Return its columns."""
        return Mapped(self.path).schema()

    def open(self) -> LiveReader:
        """Read the file; nothing of it is handed over before it is due."""
        name_thread("slot-source")
        with pa.memory_map(self.path) as file:
            rows = pa.ipc.open_file(file).read_all().combine_chunks().to_batches()[0]
        return LiveReader(rows, self.start_ns)


class LiveReader:
    """Hands over all rows that are due; sleeps in `poll` while none is."""

    def __init__(self, rows: pa.RecordBatch, start_ns: int) -> None:
        self._rows = rows
        self._due_ns = rows["arrival"].to_numpy().astype(np.int64) + start_ns
        self._next = 0

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        """Return what has come due since, after a sleep if nothing had; None if still nothing."""
        if self._next == len(self._due_ns):
            return END_OF_INPUT
        wait_s = (int(self._due_ns[self._next]) - time.time_ns()) / 1e9
        if wait_s > 0:
            time.sleep(min(max(wait_s, REST_S), MOST_S))
        end = int(self._due_ns.searchsorted(time.time_ns(), "right"))
        if end == self._next:
            return None
        rows = self._rows.slice(self._next, end - self._next)
        self._next = end
        return rows

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class Silent:
    """A device or a queue that has nothing for so long.

    Attributes:
        path: of a file with its columns.
        seconds: until its end, from when it is opened.
        waits: whether a poll waits, as one of a queue with a time limit; else it says at once that
            there is nothing.
    """

    path: str
    seconds: float
    waits: bool

    def describe(self) -> str:
        """Return that it has nothing."""
        return f"silent for {self.seconds:g} s"

    def schema(self) -> pa.Schema:
        """Return its columns."""
        return Mapped(self.path).schema()

    def open(self) -> SilentReader:
        """Begin to have nothing."""
        name_thread("slot-source")
        return SilentReader(time.monotonic() + self.seconds, waits=self.waits)


class SilentReader:
    """Has nothing, until its end."""

    def __init__(self, until_s: float, *, waits: bool) -> None:
        self._until_s, self._waits = until_s, waits

    def poll(self) -> EndOfInput | None:
        """Return None, or that it is over."""
        if time.monotonic() >= self._until_s:
            return END_OF_INPUT
        if self._waits:
            time.sleep(MOST_S)
        return None

    def close(self) -> None:
        """Nothing is open."""


def live_join_flow(
    buses: Live | Silent,
    loops: Live | Silent,
    sink: sw.connectors.Output,
    *,
    over: tuple[float, float] = (DELAY_OVER, FLOW_OVER),
    slack: str | None = None,
) -> sw.Dataflow:
    """Return `workload.join_flow` of paced tables, with inputs that are not replayed but live.

    Their rows have column `arrival` too, which here says only when a row was due.
    """
    flow = sw.Dataflow("join", slack=slack)
    left = flow.source("bus", buses, event_time="ts", time_unit="ms")
    right = flow.source("scats", loops, event_time="ts", time_unit="ms")
    left = left.filter(sw.col("delay_s") > over[0]).drop("delay_s")
    right = right.filter(sw.col("flow") > over[1]).drop("flow")
    left.join(right, on="area", within=WITHIN).sink("pairs", sink)
    return flow

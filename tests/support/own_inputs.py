"""Inputs as users write them: they print, wait for ever, or raise what they like."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput

SCHEMA = pa.schema([("t", pa.int64())])


def rows(first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"t": pa.array(range(first, first + count), pa.int64())})


@dataclass
class Feed:
    """Hands over what a generator yields; it is opened where it is read."""

    script: Callable[[], Iterator[Any]]
    closed: list[int] = field(default_factory=list)

    def describe(self) -> str:
        return "a feed of my own"

    def schema(self) -> pa.Schema:
        return SCHEMA

    def open(self) -> FeedReader:
        return FeedReader(self)


class FeedReader:
    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._script = feed.script()

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        return next(self._script, END_OF_INPUT)  # type: ignore[no-any-return]

    def close(self) -> None:
        self._feed.closed.append(1)


@dataclass
class Refilling:
    """Fills the same two arrays for each of four blocks, with 0 to 11."""

    t: Any = field(default_factory=lambda: np.zeros(3, np.int64))
    x: Any = field(default_factory=lambda: np.zeros(3))
    block: int = 0

    def describe(self) -> str:
        return "one buffer"

    def schema(self) -> pa.Schema:
        return pa.schema([("t", pa.int64()), ("x", pa.float64())])

    def open(self) -> Refilling:
        return Refilling()

    def poll(self) -> Any:
        if self.block == 4:
            return END_OF_INPUT
        self.t[:] = np.arange(len(self.t)) + len(self.t) * self.block
        self.x[:] = self.t
        self.block += 1
        return pa.record_batch({"t": pa.array(self.t), "x": pa.array(self.x)})

    def close(self) -> None:
        pass


def stuck() -> Iterator[pa.RecordBatch]:
    """Two rows, and then a call that never returns."""
    print("reading two rows")  # noqa: T201 - what the test is about
    yield rows(0, 2)
    threading.Event().wait()


def talking(row: dict[str, Any]) -> dict[str, Any]:
    """A function for map_rows that prints and logs."""
    if row["t"] < 3:
        print("seen", row["t"])  # noqa: T201 - what the test is about
        logging.getLogger("mine").warning("odd: %d", row["t"])
    return row

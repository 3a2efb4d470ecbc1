"""Inputs that do not end by themselves, or when they are told, and a log that is live."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from slackwater.runtime.sources.around import InputAround
from slackwater.runtime.sources.spec import (
    END_OF_INPUT,
    Block,
    EndOfInput,
    Input,
    Polled,
    Replay,
    SourceReader,
    opened_at,
)
from tests.support.readers import next_rows

SCHEMA = pa.schema([("ts", pa.timestamp("ns")), ("n", pa.int64())])
TICK_NS = 1_000_000


@dataclass(frozen=True)
class EndlessInput:
    """Counts up, a row for each millisecond of event time, as fast as it is asked."""

    block_rows: int = 1_000

    def describe(self) -> str:
        return "numbers without end"

    def schema(self) -> pa.Schema:
        return SCHEMA

    def open(self) -> PartsReader:
        return PartsReader(self._blocks())

    def _blocks(self) -> Iterator[pa.RecordBatch]:
        for first in count(0, self.block_rows):
            n = np.arange(first, first + self.block_rows)
            yield pa.record_batch([pa.array(n * TICK_NS, SCHEMA.field("ts").type), n], SCHEMA.names)


@dataclass(frozen=True)
class SilentInput:
    """What another input has, and then neither a row nor an end."""

    inner: Input

    def describe(self) -> str:
        return f"{self.inner.describe()}, then silence"

    def schema(self) -> pa.Schema:
        return self.inner.schema()

    def open(self) -> SilentReader:
        return SilentReader(self.inner.open())


@dataclass(frozen=True)
class ToldInput:
    """What another input has, in short blocks, until the file `over` is there: then the end.

    So a test decides when its job is done, and need not know how quick the machine is.
    """

    reads_inline: ClassVar[bool] = True
    """Not read ahead: what is read before the file is there still counts."""
    inner: Input
    over: str
    block_rows: int = 10

    def describe(self) -> str:
        return f"{self.inner.describe()}, until {self.over} is there"

    def schema(self) -> pa.Schema:
        return self.inner.schema()

    def open(self) -> ToldReader:
        return ToldReader(self.inner.open(), Path(self.over), self.block_rows)


@dataclass(frozen=True)
class HeldInput:
    """First rows of another input, then nothing until the file `over` is there, then the rest.

    So a test that meddles with a job does so before its end, however busy the machine is.
    """

    inner: Input
    over: str
    rows: int

    def describe(self) -> str:
        return f"{self.inner.describe()}, held after {self.rows} rows until {self.over} is there"

    def schema(self) -> pa.Schema:
        return self.inner.schema()

    def open(self) -> HeldReader:
        return HeldReader(self.inner.open(), Path(self.over), self.rows)


@dataclass(frozen=True)
class HeldParts(InputAround):
    """The same of each partition of an input, which is opened at positions."""

    inner: Input
    over: str
    rows: int

    def open(self, name: str = "", at: bytes | None = None) -> HeldReader:
        return HeldReader(opened_at(self.inner, name, at), Path(self.over), self.rows)


@dataclass(frozen=True)
class LoggedInput:
    """Numbers of a log, a thousand a second since it began; it can be read from any of them."""

    replay: ClassVar[Replay] = "exact"
    rows: int
    began_s: float

    def describe(self) -> str:
        return f"log of {self.rows} numbers"

    def schema(self) -> pa.Schema:
        return SCHEMA

    def open(self, name: str = "", at: bytes | None = None) -> LoggedReader:
        del name
        return LoggedReader(self, int(at or b"0"))


class LoggedReader:
    def __init__(self, log: LoggedInput, first: int) -> None:
        self._log, self._next = log, first

    def poll(self) -> Polled:
        log, first = self._log, self._next
        stop = min(int((time.time() - log.began_s) * 1_000), log.rows)
        if first >= log.rows:
            return END_OF_INPUT
        if stop <= first:
            return None
        self._next = stop
        n = np.arange(first, stop)
        columns = [pa.array(n * TICK_NS, SCHEMA.field("ts").type), n]
        return Block(pa.record_batch(columns, SCHEMA.names), b"%d" % first)

    def close(self) -> None:
        pass


class PartsReader:
    def __init__(self, parts: Iterator[pa.RecordBatch]) -> None:
        self._parts = parts

    def poll(self) -> pa.RecordBatch | EndOfInput:
        return next(self._parts, END_OF_INPUT)

    def close(self) -> None:
        self._parts = iter(())


class SilentReader:
    def __init__(self, inner: SourceReader) -> None:
        self._inner = inner

    def poll(self) -> Polled:
        polled = self._inner.poll()
        return None if isinstance(polled, EndOfInput) else polled

    def close(self) -> None:
        self._inner.close()


class HeldReader:
    def __init__(self, inner: SourceReader, over: Path, rows: int) -> None:
        self._inner, self._over, self._left = inner, over, rows
        self._rest: pa.RecordBatch | None = None

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        if self._rest is None or len(self._rest) == 0:
            polled = next_rows(self._inner)
            if not isinstance(polled, pa.RecordBatch):
                return polled
            self._rest = polled
        most = len(self._rest) if self._over.exists() else min(self._left, len(self._rest))
        if most == 0:
            return None
        block, self._rest = self._rest[:most], self._rest[most:]
        self._left -= min(most, self._left)
        return block

    def close(self) -> None:
        self._rest = None
        self._inner.close()


class ToldReader:
    def __init__(self, inner: SourceReader, over: Path, block_rows: int) -> None:
        self._inner, self._over, self._block_rows = inner, over, block_rows
        self._rest: pa.RecordBatch | None = None

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        if self._over.exists():
            return END_OF_INPUT
        if self._rest is None or len(self._rest) == 0:
            polled = next_rows(self._inner)
            if not isinstance(polled, pa.RecordBatch):
                return polled
            self._rest = polled
        block, self._rest = self._rest[: self._block_rows], self._rest[self._block_rows :]
        return block

    def close(self) -> None:
        self._rest = None
        self._inner.close()

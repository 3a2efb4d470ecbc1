"""Inputs that behave as badly as real ones may, and inputs read to their end."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from slackwater.runtime.sources.spec import (
    END_OF_INPUT,
    BadRows,
    Block,
    EndOfInput,
    Input,
    SourceReader,
)


@dataclass(frozen=True)
class JitterInput:
    """Another input, cut anew at random, with calls in between that find nothing.

    One seed gives one sequence of answers. Blocks of no rows are among them.
    """

    inner: Input
    seed: int
    none_share: float = 0.3
    """How many of the calls find nothing, on average; below 1."""

    def describe(self) -> str:
        return f"{self.inner.describe()}, jittered by seed {self.seed}"

    def schema(self) -> pa.Schema:
        return self.inner.schema()

    def open(self) -> JitterReader:
        chance = random.Random(self.seed)  # noqa: S311 - jitter, not a secret
        return JitterReader(self.inner.open(), chance, self.none_share)


class JitterReader:
    def __init__(self, inner: SourceReader, chance: random.Random, none_share: float) -> None:
        self._inner = inner
        self._chance = chance
        self._none_share = none_share
        self._rest: pa.RecordBatch | None = None

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        if self._chance.random() < self._none_share:
            return None
        if self._rest is None or len(self._rest) == 0:
            polled = next_rows(self._inner)
            if polled is None or polled is END_OF_INPUT:
                return polled
            assert isinstance(polled, pa.RecordBatch)
            self._rest = polled
        # Half of the cuts are tiny: that is where off-by-ones live.
        most = 3 if self._chance.random() < 0.5 else len(self._rest)
        rows = self._chance.randint(0, most)
        block, self._rest = self._rest.slice(0, rows), self._rest.slice(rows)
        return block

    def close(self) -> None:
        self._rest = None
        self._inner.close()


def next_rows(reader: SourceReader) -> pa.RecordBatch | BadRows | EndOfInput | None:
    """Poll a reader; return what it has without its position."""
    polled = reader.poll()
    return polled.rows if isinstance(polled, Block) else polled


def rows_of(given: Input) -> list[dict[str, Any]]:
    """Return all rows of an input, whose blocks have the schema that it says."""
    rows, reader = [], given.open()
    while (block := next_rows(reader)) is not END_OF_INPUT:
        assert isinstance(block, pa.RecordBatch)
        assert block.schema == given.schema()
        rows += block.to_pylist()
    return rows


def types_of(given: Input) -> dict[str, str]:
    """Return {column: type} of an input."""
    return {field.name: str(field.type) for field in given.schema()}

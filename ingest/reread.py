"""Tables that are read again from time to time, for lookups.

```
reading at    09:00              10:00              11:00 (fails)
rows          a 1, b 2           a 1, c 3           a 1, c 3 again
count for     09:00 ≤ t < 10:00  10:00 ≤ t < 11:00  11:00 ≤ t < 12:00
```

Readings are at whole multiples of `every` since 1970, by the clock. The rows of the first one count
for all older events, too. After each reading comes a row of nulls at the time of the next, so that
the source promises that far.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import SchemaError, SettingError, SlackwaterError
from slackwater.runtime.model import (
    EARLIEST_NS,
    END_NS,
    LATEST_NS,
    Duration,
    duration_ns,
    format_ns,
)
from slackwater.runtime.shown import shown, text_of
from slackwater.runtime.sources.read_whole import READ_NS, UNTIL_NS, doubled_key, read_whole
from slackwater.runtime.sources.spec import (
    END_OF_INPUT,
    BadRows,
    Block,
    Input,
    Polled,
    Replay,
    missing_methods,
)

__all__ = ["RereadInput", "reread"]

_BAD = pa.schema({"file": pa.string(), "line": pa.int64(), "reason": pa.string(), "text": "string"})


@checked_call
def reread(input: Input, *, every: Duration) -> RereadInput:  # noqa: A002 - as in SourceSpec
    """Return a table that is read again from time to time, for `lookup`.

    Args:
        input: input that ends, such as `sw.csv("tariffs.csv")`; it is read whole each time.
        every: time between two readings, "1h"; they are at whole multiples of it since 1970.

    Raises:
        SettingError: no input, or no length of time.
    """
    if isinstance(input, type) or missing_methods(input):
        raise SettingError(
            f"reread: {shown(input, 60)} is not an input; write sw.csv('…'), say. A table in "
            "memory does not change: give it to lookup as it is"
        )
    return RereadInput(input, duration_ns(every, what="reread: every", positive=True))


@dataclass(frozen=True, eq=False)
class RereadInput:
    """A table that is read again; `reread` makes it.

    Attributes:
        inner: input that is read whole.
        every_ns: time between two readings.
        keys: key columns, of which no two rows may be equal.
        step: name of the step that looks up, for errors.
        clock_ns: clock of readings, nanoseconds since 1970.
        is_once: whether it is read once, and its rows count for all events.
    """

    inner: Input
    every_ns: int
    keys: tuple[str, ...] = ()
    step: str = "lookup"
    clock_ns: Callable[[], int] = time.time_ns
    is_once: bool = False

    replay: ClassVar[Replay] = "none"
    skips_spooled: ClassVar[bool] = True
    on_bad: ClassVar[str] = "skip"

    def with_keys(self, keys: tuple[str, ...], *, step: str) -> RereadInput:
        """Return the table with its key columns, and the name of its step."""
        return replace(self, keys=keys, step=step)

    def simulated(self) -> RereadInput:
        """Return the table as a simulation reads it: once, so that runs are the same."""
        return replace(self, is_once=True)

    @property
    def table(self) -> str:
        """The input in a few words."""
        return self.inner.describe().partition("\n")[0]

    def describe(self) -> str:
        """Return the input, and how often it is read."""
        return f"{self.inner.describe()}, read again every {format_ns(self.every_ns)}"

    def schema(self) -> pa.Schema:
        """Return the input's columns, and those of the times for which a row counts.

        Raises:
            SchemaError: the input has a column of such a name.
        """
        columns = self.inner.schema().remove_metadata()
        for name in (READ_NS, UNTIL_NS):
            if name in columns.names:
                raise SchemaError(
                    f"reread: the table has a column {name!r} of its own, which reread adds; "
                    "rename it"
                )
            columns = columns.append(pa.field(name, pa.int64()))
        return columns

    def open(self, name: str = "", at: bytes | None = None) -> RereadReader:
        """Begin with a reading, or after the last spooled one."""
        del name
        return RereadReader(self, int(at) if at else None)


class RereadReader:
    """Reads a table, and again when it is time.

    Args:
        of: the input and its settings.
        due_ns: time of the first reading; None if its rows count for older events, too.
    """

    def __init__(self, of: RereadInput, due_ns: int | None) -> None:
        self._of, self._schema = of, of.schema()
        self._due_ns = EARLIEST_NS if due_ns is None else due_ns
        self._rows: pa.Table | None = None
        self._read_ns = EARLIEST_NS

    def poll(self) -> Polled:
        """Return the rows of a reading; None if none is due.

        A reading that fails is returned as an unreadable record, and the old rows count on.

        Raises:
            SlackwaterError: the first reading failed.
        """
        if self._of.is_once:
            return self._only()
        now_ns, every_ns = self._of.clock_ns(), self._of.every_ns
        if self._due_ns > now_ns:
            return None
        if self._rows is None or self._read_ns < self._due_ns:
            self._read_ns = now_ns
            try:
                self._rows = self._read()
            except SlackwaterError as problem:
                if self._rows is None:
                    raise
                return self._failed(problem)
        from_ns = self._due_ns
        self._due_ns = (
            now_ns // every_ns * every_ns if from_ns == EARLIEST_NS else from_ns + every_ns
        )
        return Block(self._version(self._rows, from_ns, self._due_ns), str(self._due_ns).encode())

    def _only(self) -> Polled:
        """Return the rows of the one reading, which count for all events; then the end."""
        if self._due_ns != EARLIEST_NS:
            return END_OF_INPUT
        self._due_ns = LATEST_NS
        # The end of the input promises as much as the last row, which is omitted. Results of
        # everything() have LATEST_NS as their time, so rows count beyond it.
        rows = self._version(self._read(), EARLIEST_NS, END_NS)[:-1]
        return Block(rows, str(LATEST_NS).encode())

    def close(self) -> None:
        """Drop the rows. Idempotent."""
        self._rows = None

    def _read(self) -> pa.Table:
        rows = read_whole(self._of.inner, who=self._of.step)
        own = pa.schema(list(self._schema)[:-2])
        if not rows.schema.equals(own):
            raise SchemaError(
                f"step {self._of.step!r}: {self._of.table} has columns {rows.schema.names} with "
                f"types {[str(kind) for kind in rows.schema.types]} now, unlike the first "
                "time; write it as it was, or start the job again"
            )
        keys = rows.select(list(self._of.keys))
        keys = keys.append_column(READ_NS, pa.array(np.arange(len(rows)))).drop_null()
        firsts = keys.group_by(self._of.keys).aggregate([(READ_NS, "min")])
        doubled = np.setdiff1d(keys[READ_NS].to_numpy(), firsts[f"{READ_NS}_min"].to_numpy())
        if len(doubled):
            raise doubled_key(rows, self._of.keys, doubled, who=self._of.step, table=self._of.table)
        return rows

    def _version(self, rows: pa.Table, from_ns: int, until_ns: int) -> pa.RecordBatch:
        """Return the rows of a reading, and the row of nulls after them."""
        nulls = [pa.nulls(1, kind) for kind in rows.schema.types]
        table = pa.concat_tables([rows, pa.table(nulls, schema=rows.schema)]).combine_chunks()
        times = np.full(len(table), from_ns)
        times[-1] = until_ns
        (block,) = table.to_batches()
        own = [pa.array(times), pa.array(np.full(len(table), until_ns))]
        return pa.RecordBatch.from_arrays([*block.columns, *own], schema=self._schema)

    def _failed(self, problem: SlackwaterError) -> BadRows:
        problem_line = text_of(problem).partition("\n")[0]
        record = {
            "file": self._of.table,
            "line": None,
            "reason": f"a reading failed, and the old rows count on: {problem_line}",
            "text": "",
        }
        return BadRows(pa.RecordBatch.from_pylist([record], _BAD))

"""An input whose rows say how far the clock of the host that reads them is off.

```
input ─▶ rows ─▶ rows, clock_offset_ns, clock_bound_ns     as known when they were read
                       ▲
time server ◀── ten exchanges at first, then every ten seconds
```
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from slackwater.ingest.timesync.address import address_of
from slackwater.ingest.timesync.client import TimeSync
from slackwater.runtime.errors import SchemaError, SettingError
from slackwater.runtime.model import Duration, duration_ns
from slackwater.runtime.sources.spec import EndOfInput, Input, SourceReader

OFFSET, BOUND = "clock_offset_ns", "clock_bound_ns"


def synced(
    input: Input,  # noqa: A002 - as in SourceSpec
    *,
    server: str,
    key: str,
    every: Duration = "10s",
) -> SyncedInput:
    """Return an input that says with each row how far its host's clock is off.

    It adds two int64 columns, for `clock=sw.clock_columns("clock_offset_ns", "clock_bound_ns",
    unit="ns")` of the source: what to add to that clock's time to have the server's, and how far
    off that can be. Both are as known when the rows were read: the bound holds for rows that were
    stamped since the clock was last set, not for one stamped before that and read after it. That
    host is the one on which the source is placed: its clock must be the one by which events get
    their times.

    Args:
        input: whose rows.
        server: `host:port` of a time server (`slackwater timesync serve`).
        key: the file with its key, on the host where the source reads. The path travels, the key
            does not.
        every: how often the clocks are compared again. A server that no longer answers is asked
            again as often; what is known ages, and its bound grows by 100 µs a second.

    Raises:
        SettingError: no input, no address, no path, or no length of time.

    Source: [thesis] §3.2.2. Differs: the offset travels with the events, not in a store of its own.
    """
    if not callable(getattr(input, "schema", None)):
        raise SettingError(f"synced: {input!r} is no input; write sw.parquet('…'), say")
    address_of(server)
    if not isinstance(key, str | os.PathLike):
        raise SettingError(
            f"synced: key={key!r} is no path; give that of the file that slackwater timesync key "
            "FILE wrote"
        )
    every_ns = duration_ns(every, what="synced: every", positive=True)
    return SyncedInput(input, server, os.path.abspath(os.path.expanduser(key)), every_ns)


@dataclass(frozen=True, eq=False)
class SyncedInput:
    """An input, and the time server that its host's clock is compared with. `synced` makes it."""

    input: Input
    server: str
    key: str
    every_ns: int

    @property
    def ends_with_driver(self) -> bool:
        """Whether it ends with the process that made it, as some inputs do."""
        return bool(getattr(self.input, "ends_with_driver", False))

    def describe(self) -> str:
        """Return what is read, and whose clock it is compared with."""
        return f"{self.input.describe()}, clock compared with {self.server}"

    def schema(self) -> pa.Schema:
        """Return the input's columns, and the two.

        Raises:
            SchemaError: it has a column of such a name.
        """
        found = self.input.schema()
        for name in (OFFSET, BOUND):
            if name in found.names:
                raise SchemaError(
                    f"synced: its input has a column {name!r} of its own, which synced would add; "
                    "leave synced out, or rename that column"
                )
            found = found.append(pa.field(name, pa.int64()))
        return found

    def reads_at(self, place: str, *, kind: str, is_file: bool) -> str | None:
        """Return what of a place where a sink writes the input reads; None: nothing."""
        reads_at = getattr(self.input, "reads_at", None)
        found: str | None = reads_at and reads_at(place, kind=kind, is_file=is_file)
        return found

    def open(self) -> SyncedReader:
        """Compare the clocks, then open the input.

        Raises:
            SettingError: no key there, or others can read it.
            IngestError: the time server does not answer; or the input's own.
        """
        return SyncedReader(self.input, TimeSync(self.server, self.key), every_ns=self.every_ns)


class SyncedReader:
    """Reads an input, and compares the clocks as often as was said.

    Args:
        input: whose rows.
        sync: asks the server; is closed with this.
        every_ns: how often.
        steady_ns: by which that is counted.

    Attributes:
        sync: what is known, and what was refused.
        unanswered_rounds: how often nothing that counted came, after the first time.
    """

    def __init__(
        self,
        input: Input,  # noqa: A002 - as in SourceSpec
        sync: TimeSync,
        *,
        every_ns: int,
        steady_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.sync = sync
        self.unanswered_rounds = 0
        self._every_ns, self._steady_ns = every_ns, steady_ns
        try:
            sync.ask()
            self._asked_ns = steady_ns()
            self._reader: SourceReader = input.open()
        except BaseException:
            sync.close()
            raise

    @property
    def clock_counts(self) -> dict[str, int]:
        """What a report says of the exchanges: {what: how often}."""
        return {
            "unanswered_rounds": self.unanswered_rounds,
            "refused": sum(self.sync.refused.values()),
            "contradictions": self.sync.contradictions,
        }

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        """Return what the input returns, rows with the two columns.

        Raises:
            IngestError: the input's own.
        """
        if self._steady_ns() - self._asked_ns >= self._every_ns:
            self.unanswered_rounds += self.sync.ask() == 0
            self._asked_ns = self._steady_ns()
        polled = self._reader.poll()
        if not isinstance(polled, pa.RecordBatch):
            return polled
        now = self.sync.now()
        added = [(OFFSET, now.offset_ns), (BOUND, now.bound_ns)]
        schema, columns = polled.schema, list(polled.columns)
        for name, value in added:
            schema = schema.append(pa.field(name, pa.int64()))
            columns.append(pa.array(np.full(len(polled), value, dtype=np.int64)))
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def close(self) -> None:
        """Close the input and the socket. Safe to call twice."""
        try:
            self._reader.close()
        finally:
            self.sync.close()

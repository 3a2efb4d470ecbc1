"""Add the offset of the reading host's clock to an input's rows.

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
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from slackwater.ingest.adding_input import AddingInput, with_columns
from slackwater.ingest.timesync.address import address_of
from slackwater.ingest.timesync.client import TimeSync
from slackwater.runtime.calls import checked_options
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Duration, duration_ns
from slackwater.runtime.shown import shown
from slackwater.runtime.sources.spec import (
    Block,
    Input,
    InputTraits,
    Polled,
    Replay,
    SourceReader,
    opened_at,
)

OFFSET, BOUND = "clock_offset_ns", "clock_bound_ns"
_ADDED = [pa.field(OFFSET, pa.int64()), pa.field(BOUND, pa.int64())]


@checked_options
def synced(
    input: Input,  # noqa: A002 - as in SourceSpec
    *,
    server: str,
    key: str,
    every: Duration = "10s",
) -> SyncedInput:
    """Return an input that adds its host's clock offset to each row.

    It adds two int64 columns, for `clock_columns("clock_offset_ns", "clock_bound_ns", unit="ns")`
    as `clock=` of the source: the offset to add to that clock's time to get the server's, and its
    largest error. Both are as known when the rows were read: the bound holds for rows that were
    stamped since the clock was last set, not for a row stamped before that and read after it. The
    host is the one on which the source is placed: its clock must stamp the events.

    Args:
        input: input of the rows.
        server: `host:port` of a time server (`slackwater timesync serve`).
        key: path of the file with the server's key, on the host where the source reads. The path
            travels, the key does not.
        every: time between two comparisons. A silent server is asked again as often; the offset
            ages, and its bound grows by 100 µs a second.

    Raises:
        SettingError: no input, no address, no path, or no length of time.

    Source: [thesis] §3.2.2. Differs: the offset travels with the events, not in a separate store.
    """
    if not callable(getattr(input, "schema", None)):
        raise SettingError(f"synced: {shown(input)} is not an input; write sw.parquet('…'), say")
    address_of(server)
    if not isinstance(key, str | os.PathLike):
        raise SettingError(
            f"synced: key={shown(key)} is not a path; give that of the file that slackwater "
            "timesync key FILE wrote"
        )
    every_ns = duration_ns(every, what="synced: every", positive=True)
    return SyncedInput(input, server, os.path.abspath(os.path.expanduser(key)), every_ns)


@dataclass(frozen=True, eq=False)
class SyncedInput(AddingInput):
    """An input, and the time server for its host's clock. `synced` makes it."""

    server: str
    key: str
    every_ns: int

    word: ClassVar[str] = "synced"

    @property
    def added(self) -> list[pa.Field]:
        """Columns of the clock: its offset and its bound."""
        return _ADDED

    @property
    def traits(self) -> InputTraits:
        """Traits of the input; its offsets are those of now, so rows differ."""
        inner = super().traits
        replay: Replay = "retained" if inner.replay == "exact" else inner.replay
        return replace(inner, is_history=False, replay=replay, compares_clocks=True)

    def describe(self) -> str:
        """Return the input, and the server of its clock."""
        return f"{self.inner.describe()}, clock compared with {self.server}"

    def open(self, name: str = "", at: bytes | None = None) -> SyncedReader:
        """Compare the clocks, then open the input, at a position of it.

        Raises:
            SettingError: no key in the file, or others can read it.
            IngestError: the time server does not answer; or an error of the input.
        """
        sync = TimeSync(self.server, self.key)
        return SyncedReader(self.inner, sync, every_ns=self.every_ns, place=(name, at))


class SyncedReader:
    """Reads an input, and compares the clocks from time to time.

    Args:
        input: input of the rows.
        sync: client of the server; closed with this.
        every_ns: time between two comparisons.
        steady_ns: clock for that time.
        place: partition and position at which it is opened.

    Attributes:
        sync: client of the server, with its counts.
        unanswered_rounds: rounds without an answer that counted, after the first.
    """

    def __init__(
        self,
        input: Input,  # noqa: A002 - as in SourceSpec
        sync: TimeSync,
        *,
        every_ns: int,
        steady_ns: Callable[[], int] = time.monotonic_ns,
        place: tuple[str, bytes | None] = ("", None),
    ) -> None:
        self.sync = sync
        self.unanswered_rounds = 0
        self._every_ns, self._steady_ns = every_ns, steady_ns
        try:
            sync.ask()
            self._asked_ns = steady_ns()
            self._reader: SourceReader = opened_at(input, *place)
        except BaseException:
            sync.close()
            raise

    @property
    def clock_counts(self) -> dict[str, int]:
        """Counts of the exchanges for a report, {name: count}."""
        return {
            "unanswered_rounds": self.unanswered_rounds,
            "refused": sum(self.sync.refused.values()),
            "contradictions": self.sync.contradictions,
        }

    def poll(self) -> Polled:
        """Return what the input returns, rows with the two clock columns.

        Raises:
            IngestError: an error of the input.
        """
        if self._steady_ns() - self._asked_ns >= self._every_ns:
            self.unanswered_rounds += self.sync.ask() == 0
            self._asked_ns = self._steady_ns()
        polled = self._reader.poll()
        if isinstance(polled, pa.RecordBatch):
            return self._with_clock(polled)
        if isinstance(polled, Block) and isinstance(polled.rows, pa.RecordBatch):
            return Block(self._with_clock(polled.rows), polled.at)
        return polled

    def ack(self, at: bytes) -> None:
        """Tell the input that no restore asks for rows before a position."""
        if (ack := getattr(self._reader, "ack", None)) is not None:
            ack(at)

    def _with_clock(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        now = self.sync.now()
        return with_columns(rows, _ADDED, [now.offset_ns, now.bound_ns])

    def close(self) -> None:
        """Close the input and the socket. Idempotent."""
        try:
            self._reader.close()
        finally:
            self.sync.close()

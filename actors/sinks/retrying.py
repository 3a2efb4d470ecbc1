"""Try calls of a custom sink again, where its target is away for a while.

```
write ─ raised ─ pause ─▶ write                        an output that does not know its rows
write ─ raised ─ pause ─▶ open, last_ordinal, write …  one with resumes: what it lacks
```

An output that keeps its last ordinal is opened again, for its connection is of no use any more, and
a commit that raised may have been carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import pyarrow as pa

from slackwater.runtime.back_off import pause_ns
from slackwater.runtime.errors import SinkError, SlackwaterError
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plurals import count_of
from slackwater.runtime.sinks.output import Sink, SinkProgress, SinkTraits

__all__ = ["RetryingSink"]

_T = TypeVar("_T")


class RetryingSink(Sink):
    """Sink whose calls are tried again.

    Args:
        name: name of the sink.
        traits: traits of its output: how often, and whether it keeps its last ordinal.
        open_sink: opens the output; the argument says whether it had been open before.
        pause: waits for so many seconds.

    Attributes:
        retries: how often calls were tried again.

    Raises:
        SlackwaterError: the output could not be opened, as often as it was tried.
    """

    def __init__(
        self,
        name: str,
        traits: SinkTraits,
        open_sink: Callable[[bool], Sink],
        pause: Callable[[float], None],
    ) -> None:
        self._name, self._most, self._pause = name, traits.retry, pause
        self._keeps_ordinal, self._open_sink = traits.keeps_ordinal, open_sink
        self._waiting: list[tuple[pa.RecordBatch, int]] = []  # since the last commit
        self._last = -1  # ordinal that the output had when it was opened again
        self._has_ended = self._is_flushed = False
        self._sink: Sink | None = None
        self.retries = 0
        self._tried(lambda _: None)

    def last_ordinal(self) -> int:  # noqa: D102 - see Sink
        return self._tried(lambda sink: sink.last_ordinal())

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:  # noqa: D102 - see Sink
        self._is_flushed = False
        self._tried(lambda sink: self._write(sink, rows, first_ordinal))
        if self._keeps_ordinal:
            self._waiting.append((rows, first_ordinal))

    def _write(self, sink: Sink, rows: pa.RecordBatch, first_ordinal: int) -> None:
        """Write what the output did not have when it was opened again."""
        has = max(self._last + 1 - first_ordinal, 0)
        if has < len(rows):
            sink.write(rows.slice(has), first_ordinal + has)

    def end(self) -> None:  # noqa: D102 - see Sink
        self._tried(lambda sink: sink.end())
        self._has_ended = True

    def flush(self) -> None:  # noqa: D102 - see Sink
        self._tried(lambda sink: sink.flush())
        self._is_flushed = True

    def commit(self) -> None:  # noqa: D102 - see Sink
        self._tried(lambda sink: sink.commit())
        self._waiting = []

    def position(self) -> bytes | None:  # noqa: D102 - see Sink
        return self._tried(lambda sink: sink.position())

    def close(self) -> None:  # noqa: D102 - see Sink
        if self._sink is not None:
            self._sink.close()

    def abort(self, error: str) -> None:  # noqa: D102 - see Sink
        if self._sink is not None:
            self._sink.abort(error)

    def progress(self) -> SinkProgress | None:  # noqa: D102 - see Sink
        return None if self._sink is None else self._sink.progress()

    def _opened(self, *, has_raised: bool) -> Sink:
        """Return the sink, opened again if it keeps its last ordinal and has raised."""
        if self._sink is None:
            self._sink = self._open_sink(False)
        elif has_raised and self._keeps_ordinal:
            with suppress(SlackwaterError):
                self._sink.abort("its target was away")
            self._sink = self._open_sink(True)
            self._write_missing(self._sink)
        return self._sink

    def _write_missing(self, sink: Sink) -> None:
        """Write the rows since the last commit that the output lacks."""
        self._last = sink.last_ordinal()
        if self._waiting and self._last < self._waiting[0][1] - 1:
            raise _RowsGone(
                f"sink {self._name!r}: its last_ordinal() is {self._last:,} after it was opened "
                f"again, and rows up to {self._waiting[0][1] - 1:,} had been committed; bring them "
                "back, or write to an empty target"
            )
        for rows, ordinal in self._waiting:
            self._write(sink, rows, ordinal)
        if self._has_ended:
            sink.end()
        if self._is_flushed:
            sink.flush()

    def _tried(self, call: Callable[[Sink], _T]) -> _T:
        """Return what a call returns, at the latest in its last try."""
        paused_ns = 0
        for raised in range(self._most + 1):
            try:
                return call(self._opened(has_raised=raised > 0))
            except _RowsGone:
                raise
            except SlackwaterError as problem:
                if raised == self._most:
                    raise self._given_up(problem, paused_ns) from problem.__cause__
            self.retries += 1
            self._pause(pause_ns(raised) / NS_PER_SECOND)
            paused_ns += pause_ns(raised)
        raise AssertionError("the last try returns or raises")

    def _given_up(self, problem: SlackwaterError, paused_ns: int) -> SinkError:
        first, *rest = str(problem).split("\n")
        tries = f"tried {count_of(self._most + 1, 'time')} with pauses of "
        tries = f"{tries}{paused_ns / NS_PER_SECOND:g} s (retry={self._most})"
        return SinkError("\n".join([f"{first}; {tries}", *rest]))


class _RowsGone(SinkError):
    """Rows that were committed are gone: no further try helps."""

"""Sinks in virtual time that outlive attempts: rows by ordinal, each decided once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from slackwater.runtime.errors import SinkError
from slackwater.runtime.model import START_NS, Batch

__all__ = ["OrdinalSinks", "texts_of"]


def texts_of(batch: Batch) -> list[str]:
    """Return the rows of a batch as text, in which −0.0 and 0.0 differ."""
    columns = [batch.event_time_ns, *batch.columns.values()]
    return [repr(row) for row in zip(*[column.tolist() for column in columns], strict=True)]


class OrdinalSinks:
    """Sink port that keeps rows with their ordinals over the attempts of a job.

    Args:
        sinks: names of the sinks.
        says_last: whether it says its last ordinal, so that it gets no row twice. If not, rows come
            again, and each must be as it was.

    Attributes:
        rows: {sink: its rows as text, by ordinal}.
        again: number of rows that came again.
        ended: sinks whose stream has ended.
    """

    def __init__(self, sinks: Iterable[str], *, says_last: bool = True) -> None:
        self.rows: dict[str, list[str]] = {sink: [] for sink in sinks}
        self._says_last, self.again = says_last, 0
        self.ended: set[str] = set()

    def clock_ns(self) -> int:
        """Return no time: no row waits."""
        return START_NS

    def begin(self) -> Mapping[str, int]:
        """Return what each sink has."""
        return {sink: len(rows) - 1 for sink, rows in self.rows.items()} if self._says_last else {}

    def write(self, sink: str, batch: Batch, first_ordinal: int) -> None:
        """Keep rows.

        Raises:
            SinkError: rows are missing before them, or came otherwise before, or came again
                although the sink says its last ordinal.
        """
        rows, came = self.rows[sink], texts_of(batch)
        known = rows[first_ordinal : first_ordinal + len(came)]
        is_again = bool(known) and self._says_last
        if first_ordinal > len(rows) or known != came[: len(known)] or is_again:
            raise SinkError(
                f"sink {sink!r}: {len(came):,} rows came from ordinal {first_ordinal:,} on, and it "
                f"has {len(rows):,}: some are missing, or came before, perhaps others; "
                f"{known[:1]} and {came[:1]}"
            )
        self.again += len(known)
        rows += came[len(known) :]

    def end(self, sink: str) -> None:
        """Note the end of a stream."""
        self.ended.add(sink)

    def flush(self, sink: str) -> None:
        """Do nothing: rows are kept at once."""

    def commit(self, sink: str) -> None:
        """Do nothing: rows are kept at once."""

    def close(self, sink: str) -> None:
        """Do nothing: no output is open."""

    def abort(self, sink: str, error: str) -> None:
        """Do nothing: rows that were written stay."""

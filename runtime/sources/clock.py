"""Clocks of a source are corrected: event time + offset, before all else.

```
own clock     10:00:00.000   10:00:00.500   10:00:01.000
offset, ms            42             42             44     ours less its own, as measured
event time    10:00:00.042   10:00:00.542   10:00:01.044   ± the bound
```

Order, promise, lateness and `ahead=` use the event time; the column keeps what the clock said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model import END_NS, LONGEST_NS, START_NS, Columns, Int64Array, duration_ns
from slackwater.runtime.model.state import Fields
from slackwater.runtime.sources.columns import refuse_far_times
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["Corrected", "SourceClock"]


@dataclass(frozen=True, slots=True)
class Corrected:
    """Times of rows by our clock, each of shape (rows,), ns; and their corrections.

    Attributes:
        event_time_ns: when each happened.
        spoken_ns: promise of each row; None if no row promises.
        offset_ns: offset added to both times; None if none was added.
        bound_ns: how far off that can be; None if unknown.
    """

    event_time_ns: Int64Array
    spoken_ns: Int64Array | None
    offset_ns: Int64Array | None = None
    bound_ns: Int64Array | None = None


class SourceClock:
    """Clocks of one source: of each writer the last offset and bound.

    Args:
        source: its name, for errors.
        spec: its settings; without `clock` its times stay as they are.
    """

    STATE = Fields("_last", "_extremes", "_jumps")

    def __init__(self, source: str, spec: SourceSpec) -> None:
        self._source, self._columns = source, spec.clock
        self._event_time = spec.time_column
        self._scale = 1 if spec.clock is None else duration_ns(f"1{spec.clock.unit}")
        self._last = np.empty((2, 0), dtype=np.int64)  # offset, bound; by number of the writer
        self._extremes: list[int] = []  # smallest and largest offset, largest bound
        self._jumps = 0

    def correct(
        self,
        columns: Columns,
        event_time_ns: Int64Array,
        spoken_ns: Int64Array | None,
        *,
        row: int,
    ) -> Corrected:
        """Return the times of rows by our clock; remember nothing yet.

        Args:
            columns: columns, at least those that these settings name; each of shape (rows,).
            event_time_ns: shape (rows,), by the clock of its source.
            spoken_ns: shape (rows,), what each row promises, by that clock, too; None if nothing.
            row: how many rows of the input came before, for errors.

        Raises:
            SchemaError: an offset of more than 73 years, a bound below 0, or a time that is then
                too far from ours.

        Source: [thesis] Eq. 3.15. Differs: a promise is corrected with the row that makes it.
        """
        if self._columns is None:
            return Corrected(event_time_ns, spoken_ns)
        offset_ns = self._read(columns, self._columns.offset, least_ns=-LONGEST_NS, row=row)
        bound_ns = None
        if self._columns.bound is not None:
            bound_ns = self._read(columns, self._columns.bound, least_ns=0, row=row)
        event_time_ns = event_time_ns + offset_ns
        refuse_far_times(
            self._source, f"{self._event_time} + {self._columns.offset}", event_time_ns, row=row
        )
        if spoken_ns is not None:  # which may be any number
            spoken_ns = np.clip(spoken_ns, START_NS + LONGEST_NS, END_NS - LONGEST_NS) + offset_ns
        return Corrected(event_time_ns, spoken_ns, offset_ns, bound_ns)

    def keep(self, facts: Corrected, writers: Int64Array | None) -> None:
        """Remember the offsets of rows.

        Args:
            facts: facts of at least one row.
            writers: shape (rows,), numbers of `WriterTable`; None if all are of one clock.
        """
        offset_ns, bound_ns = facts.offset_ns, facts.bound_ns
        if offset_ns is None:
            return
        bounds = np.zeros_like(offset_ns) if bound_ns is None else bound_ns
        numbers = np.zeros(len(offset_ns), dtype=np.int64) if writers is None else writers
        missing = int(numbers.max()) + 1 - self._last.shape[1]
        if missing > 0:
            new = np.full((2, missing), _UNKNOWN, dtype=np.int64)
            self._last = np.concatenate([self._last, new], axis=1)
        if bound_ns is not None:
            self._jumps += self._jumped(numbers, offset_ns, bound_ns)
        self._last[:, numbers] = offset_ns, bounds  # of several rows of a writer the last stays
        now = [int(offset_ns.min()), int(offset_ns.max()), int(bounds.max())]
        before = self._extremes or now
        self._extremes = [min(before[0], now[0]), max(before[1], now[1]), max(before[2], now[2])]

    def counts(self) -> dict[str, int]:
        """Return what a report says: {what: writers, jumps or ns}; empty without rows.

        A jump is an offset that cannot be true together with the writer's last one, by both
        their bounds: a clock was set, or a row is wrong.
        """
        if self._columns is None or not self._extremes:
            return {}
        least_ns, most_ns, bound_ns = self._extremes
        counts = {
            "writers": int(np.count_nonzero(self._last[0] != _UNKNOWN)),
            "smallest_offset_ns": least_ns,
            "largest_offset_ns": most_ns,
        }
        if self._columns.bound is not None:
            counts |= {"largest_bound_ns": bound_ns, "jumps": self._jumps}
        return counts

    def _jumped(self, numbers: Int64Array, offset_ns: Int64Array, bound_ns: Int64Array) -> int:
        """Return how many offsets contradict the one before of the same writer."""
        order = np.argsort(numbers, kind="stable")
        writer, offset_ns, bound_ns = numbers[order], offset_ns[order], bound_ns[order]
        is_first = np.ones(len(writer), dtype=np.bool_)
        is_first[1:] = writer[1:] != writer[:-1]
        before_ns, before_bound_ns = self._last[:, writer]
        np.copyto(before_ns[1:], offset_ns[:-1], where=~is_first[1:])
        np.copyto(before_bound_ns[1:], bound_ns[:-1], where=~is_first[1:])
        # Offsets are below 2^61: neither difference nor sum can wrap, but for the unknown ones.
        is_known = before_ns != _UNKNOWN
        before_ns[~is_known] = 0
        jumped = np.abs(offset_ns - before_ns) > bound_ns + before_bound_ns
        return int(np.count_nonzero(jumped & is_known))

    def _read(self, columns: Columns, name: str, *, least_ns: int, row: int) -> Int64Array:
        assert self._columns is not None, "else nothing is read"
        given = np.asarray(columns[name])
        least, most = -(-least_ns // self._scale), LONGEST_NS // self._scale
        if given.size and (int(given.min()) < least or int(given.max()) > most):
            outside = int(np.argmax((given < least) | (given > most)))
            what, rule = "offset", "at most 73 years, either way"
            if least_ns == 0:
                what, rule = "bound", "a distance, zero or more and at most 73 years"
            raise SchemaError(
                f"source {self._source!r}: the {what} of its clock, {name!r}, is {given[outside]} "
                f"{self._columns.unit} in row {row + outside} (counted from 0), and it must be "
                f"{rule}; check unit={self._columns.unit!r} of clock_columns, or mend that row"
            )
        return given.astype(np.int64) * np.int64(self._scale)


_UNKNOWN = START_NS  # a writer without rows so far

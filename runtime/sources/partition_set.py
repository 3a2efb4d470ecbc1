"""Partitions of a source's input, each a writer of the source.

```
partition   newest                the one whose rows are oldest is read next
a           12    open  ◀─ next
b           40    open            promise: the least newest of all that have not ended
c           31    (ended)
d           70    parked          not opened before the others have come so far
```

Partitions that follow each other in time are so opened one after the other. With `most_open` the
one whose rows are wanted last is closed for another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from heapq import heapify, heappop, heappush
from typing import Any

import pyarrow as pa

from slackwater.runtime.errors import IngestError, SchemaError, SlackwaterError
from slackwater.runtime.model import END_NS
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shown import encodable, shown
from slackwater.runtime.sources.input_part import name_of_input
from slackwater.runtime.sources.named_reader import CountingReader, called_by_name
from slackwater.runtime.sources.partition_reader import PartitionReader
from slackwater.runtime.sources.spec import (
    END_OF_INPUT,
    BadRows,
    EndOfInput,
    Input,
    Partition,
    SourceSpec,
)

__all__ = ["PartitionSet", "partitions_of"]


LIST_NS = 1_000_000_000
"""Least time between two lists of partitions that may appear."""


def partitions_of(source: str, given: Input, *, may_be_none: bool = False) -> list[Partition]:
    """Return the partitions of an input; one named "" if it has one only.

    Args:
        source: name of the source.
        given: input of the source.
        may_be_none: whether the list may be empty, as where all that there were have vanished.

    Raises:
        IngestError: the user's code raised.
        SchemaError: it returned no list of partitions, each with a name of its own.
    """
    listed: Any = getattr(given, "partitions", None)
    if listed is None:
        return [Partition("")]
    around = getattr(given, "inner", given)  # an input around it has the same method
    own = getattr(listed, "__self__", around)
    made = called_by_name(source, own, "partitions")
    partitions: list[Any] = [None]
    with suppress(TypeError):
        partitions = list(made)
    names = [_name_of(partition) for partition in partitions]
    if None in names or not (names or may_be_none):
        fault = f"returned {shown(made)}"
    elif len(set(names)) < len(names):
        counts = Counter(names)
        fault = f"has two partitions named {shown(max(names, key=counts.__getitem__))}"
    elif (fewest := min(partitions, key=_listed_rows, default=None)) and _listed_rows(fewest) < 0:
        raise SchemaError(
            f"source {source!r}: {name_of_input(own)}.partitions says that partition "
            f"{shown(fewest.name)} has rows={fewest.rows}; write how many it has, or omit rows="
        )
    else:
        return partitions
    raise SchemaError(
        f"source {source!r}: {name_of_input(own)}.partitions {fault}; it must return a list of "
        'sw.connectors.Partition("name"), one or more, with different names'
    )


def _listed_rows(partition: Partition) -> int:
    return partition.rows or 0


def _name_of(partition: object) -> str | None:
    """Return the name of a partition; None if another value was given."""
    if not isinstance(partition, Partition):
        return None
    name, *numbers = partition
    is_sound = isinstance(name, str) and encodable(name) == name  # else UTF-8 cannot write it
    return name if is_sound and all(type(n) in (int, type(None)) for n in numbers) else None


class PartitionSet:
    """Reads the partitions of an input block by block; one that appears joins them.

    Args:
        source: name of the source.
        spec: settings of the source.
        time_ns: returns the event time of a row of the columns `time_columns`; None if it has none.
        time_columns: columns from which event times come.

    Attributes:
        appeared: partitions that were not there when they were first listed.
    """

    STATE = Fields("_partitions", "_last", elements={"_partitions": "_fresh"})

    def __init__(
        self,
        source: str,
        spec: SourceSpec,
        time_ns: Callable[[pa.RecordBatch], int | None],
        time_columns: list[str],
    ) -> None:
        self._source, self._spec = source, spec
        self._time_ns, self._time_columns = time_ns, time_columns
        self._partitions: dict[str, PartitionReader] = {}
        self._last = ""  # partition of the last rows
        self._waiting: list[tuple[int, str]] = []  # heap of those that have not ended: newest, name
        self._is_at_hand = False  # whether that of the last rows is not among them
        self._open: list[PartitionReader] = []  # noted only where not all may be
        self._list_at_ns: int | None = None  # when partitions are listed next
        self.appeared = 0

    def _fresh(self, name: str) -> PartitionReader:
        return PartitionReader(self._source, self._spec, Partition(name))

    def derive(self) -> None:
        """Put those that have not ended in their order."""
        self._is_at_hand = False
        self._waiting = [
            (partition.newest_ns, name)
            for name, partition in self._partitions.items()
            if not partition.has_ended
        ]
        heapify(self._waiting)

    @property
    def at_hand(self) -> PartitionReader:
        """Partition of the last rows."""
        return self._partitions[self._last]

    @property
    def name(self) -> str:
        """Name of the partition of the last rows."""
        return self._last

    @property
    def others_ns(self) -> int:
        """Least newest event time of the other partitions; END_NS if all have ended."""
        return self._waiting[0][0] if self._waiting else END_NS

    @property
    def count(self) -> int:
        """Number of partitions that are known."""
        return len(self._partitions)

    @property
    def positions(self) -> dict[str, bytes]:
        """Where new readers would begin, {partition: position}; those at the start omitted."""
        known: dict[str, bytes] = {}
        for partition in self._partitions.values():
            known |= partition.positions
        return known

    def ack(self, positions: Mapping[str, bytes]) -> None:
        """Tell the input that rows before positions of its partitions are safe.

        Raises:
            IngestError: the user's code raised.
        """
        for partition in self._partitions.values():
            partition.ack(positions)

    @property
    def rows(self) -> int:
        """Good rows that were taken of the partition of the last rows."""
        return self.at_hand.rows if self._last in self._partitions else 0

    @property
    def retries(self) -> int:
        """How often partitions were opened again after they raised."""
        return sum(partition.retries for partition in self._partitions.values())

    @property
    def to_pass_over(self) -> int:
        """Rows of all partitions that are still to come again."""
        return sum(partition.to_pass_over for partition in self._partitions.values())

    @property
    def retry_at_ns(self) -> int | None:
        """When the first of them is opened again; None if none raised."""
        times = [partition.retry_at_ns for partition in self._partitions.values()]
        return min((time_ns for time_ns in times if time_ns is not None), default=None)

    @property
    def reader(self) -> CountingReader | None:
        """Reader of the last rows; None if none were read."""
        return self._partitions[self._last].reader if self._last in self._partitions else None

    @property
    def file(self) -> str | None:
        """File of the last block; None if the reader does not say."""
        return self.at_hand.file

    @property
    def clock_counts(self) -> dict[str, int]:
        """Counts of readers that compare clocks, over all partitions."""
        counts: dict[str, int] = {}
        for partition in self._partitions.values():
            for what, count in partition.clock_counts.items():
                counts[what] = counts.get(what, 0) + count
        return counts

    def poll(self, now_ns: int) -> pa.RecordBatch | BadRows | EndOfInput | None:
        """Return the next rows of any partition; None now, or the end of all.

        Raises:
            IngestError, SchemaError: the input cannot be read, or its partitions not be named.
        """
        if self._is_at_hand:
            self._wait(self.at_hand)
            self._is_at_hand = False
        grows = self._spec.traits.grows
        if self._list_at_ns is None or (grows and now_ns >= self._list_at_ns):
            self._list(now_ns)
        polled = self._poll_oldest(now_ns)
        while isinstance(polled, EndOfInput) and grows and self._list(now_ns):
            polled = self._poll_oldest(now_ns)
        return polled

    def _poll_oldest(self, now_ns: int) -> pa.RecordBatch | BadRows | EndOfInput | None:
        """Return rows of the oldest partition that has some; None, or the end.

        No more are asked than may be open: else one that has nothing now would open all others.
        """
        without: list[PartitionReader] = []
        most = self._spec.traits.most_open or len(self._waiting)
        polled: pa.RecordBatch | BadRows | EndOfInput | None = END_OF_INPUT
        while self._waiting and len(without) < most:
            partition = self._partitions[heappop(self._waiting)[1]]
            self._make_room(partition)
            polled = partition.poll(now_ns)
            if isinstance(polled, EndOfInput):
                partition.has_ended = True
                partition.park()
            elif polled is None:
                without.append(partition)
            else:
                self._last, self._is_at_hand = partition.name, True
                break
        for partition in without:
            self._wait(partition)
        return None if without and isinstance(polled, EndOfInput) else polled

    def _wait(self, partition: PartitionReader) -> None:
        heappush(self._waiting, (partition.newest_ns, partition.name))

    def _make_room(self, partition: PartitionReader) -> None:
        """Close the partition that is wanted last, if no more may be open."""
        most = self._spec.traits.most_open
        if most is None or partition.reader is not None:
            return
        self._open = [other for other in self._open if other.reader is not None]
        if len(self._open) >= most:
            max(self._open, key=lambda other: (other.newest_ns, other.name)).park()
        self._open.append(partition)

    def count_rows(self, rows: int) -> None:
        """Note that so many of the last rows were taken."""
        self.at_hand.count_rows(rows)

    def count_bad(self, rows: int) -> None:
        """Note that so many of the last records were taken that could not be read."""
        self.at_hand.count_bad(rows)

    def close(self) -> None:
        """Close all partitions, also after one that cannot be closed.

        Raises:
            SlackwaterError: the first that could not be closed.
        """
        problems: list[SlackwaterError] = []
        for partition in self._partitions.values():
            try:
                partition.close()
            except SlackwaterError as problem:
                problems.append(problem)
        if problems:
            raise problems[0]

    def _list(self, now_ns: int) -> bool:
        """Add partitions that are not known yet; return whether there were any."""
        is_first, self._list_at_ns = self._list_at_ns is None, now_ns + LIST_NS
        new = 0
        listed = partitions_of(self._source, self._spec.input, may_be_none=not is_first)
        for partition in listed:
            known = self._partitions.get(partition.name)
            if known is not None:
                known.know(partition)
                continue
            made = PartitionReader(self._source, self._spec, self._looked_at(partition))
            self._partitions[partition.name] = made
            self._wait(made)
            new += 1
        self.appeared += 0 if is_first else new
        return new > 0

    def _looked_at(self, partition: Partition) -> Partition:
        """Return a partition with its first event time, if its first row shows one.

        One that cannot be read is as one without: it is opened at once, and says why.
        """
        if partition.first_ns is not None or not self._spec.traits.shows_first_rows:
            return partition
        first_ns = None
        with suppress(IngestError, SchemaError):
            row = called_by_name(
                self._source, self._spec.input, "first_row", partition.name, self._time_columns
            )
            first_ns = None if row is None else self._time_ns(row)
        return partition._replace(first_ns=first_ns)

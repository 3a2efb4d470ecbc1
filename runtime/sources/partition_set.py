"""Open partitions of a source's input, each a writer of the source.

```
partition   newest          the one whose rows are oldest is read next
a           12    ◀─ next
b           40              promise: the least newest of all that have not ended
c           31  (ended)
```
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa

from slackwater.runtime.errors import SchemaError, SlackwaterError
from slackwater.runtime.model import END_NS
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shown import encodable, shown
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


def partitions_of(source: str, given: Input) -> list[str]:
    """Return the names of an input's partitions: "" of one that has one only.

    Raises:
        IngestError: the user's code raised.
        SchemaError: it returned no list of partitions, each with a name of its own.
    """
    listed = getattr(given, "partitions", None)
    if listed is None:
        return [""]
    around = getattr(given, "inner", given)  # an input around it has the same method
    own = getattr(listed, "__self__", around)
    made = called_by_name(source, own, "partitions")
    names: list[Any] = []
    with suppress(TypeError):
        names = [partition.name if isinstance(partition, Partition) else None for partition in made]
    if not (names and all(isinstance(name, str) and _is_sound(name) for name in names)):
        fault = f"returned {shown(made)}"
    elif twice := [name for name in names if names.count(name) > 1]:
        fault = f"has two partitions named {shown(twice[0])}"
    else:
        return names
    raise SchemaError(
        f"source {source!r}: {type(own).__qualname__}.partitions {fault}; it must return a list of "
        'sw.connectors.Partition("name"), one or more, with different names'
    )


def _is_sound(name: str) -> bool:
    """Return whether a name has no lone surrogates, which UTF-8 cannot write."""
    return encodable(name) == name


class PartitionSet:
    """Reads the partitions of an input block by block; one that appears joins them.

    Args:
        source: name of the source.
        spec: settings of the source.
    """

    STATE = Fields("_partitions", "_last", elements={"_partitions": "_fresh"})

    def __init__(self, source: str, spec: SourceSpec) -> None:
        self._source, self._spec = source, spec
        self._partitions: dict[str, PartitionReader] = {}
        self._last = ""  # partition of the last rows
        self._is_listed = False  # whether the input has been asked for its partitions

    def _fresh(self, name: str) -> PartitionReader:
        return PartitionReader(self._source, self._spec, name)

    @property
    def at_hand(self) -> PartitionReader:
        """Partition of the last rows."""
        return self._partitions[self._last]

    @property
    def others_ns(self) -> int:
        """Least newest event time of the other partitions; END_NS if all have ended."""
        open_ns = [
            partition.newest_ns
            for partition in self._partitions.values()
            if not partition.has_ended and partition.name != self._last
        ]
        return min(open_ns, default=END_NS)

    @property
    def rows(self) -> int:
        """Good rows that were taken, of all partitions."""
        return sum(partition.rows for partition in self._partitions.values())

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

    def poll(self) -> pa.RecordBatch | BadRows | EndOfInput | None:
        """Return the next rows of any partition; None now, or the end of all.

        Raises:
            IngestError, SchemaError: the input cannot be read, or its partitions not be named.
        """
        if not self._is_listed:
            self._list()
        while True:
            waiting = [
                partition for partition in self._partitions.values() if not partition.has_ended
            ]
            for partition in sorted(
                waiting, key=lambda partition: (partition.newest_ns, partition.name)
            ):
                polled = partition.poll()
                if isinstance(polled, EndOfInput):
                    partition.has_ended = True
                elif polled is not None:
                    self._last = partition.name
                    return polled
            if not (self._spec.traits.grows and self._list()):
                break
        is_over = all(partition.has_ended for partition in self._partitions.values())
        return END_OF_INPUT if is_over else None

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

    def _list(self) -> bool:
        """Add partitions that are not known yet; return whether there were any."""
        self._is_listed = True
        known = len(self._partitions)
        for name in partitions_of(self._source, self._spec.input):
            if name not in self._partitions:
                self._partitions[name] = self._fresh(name)
        return len(self._partitions) > known

"""Hold rows for a source's slot in Ray's object store.

They are of a Spark frame, or of a dataset of Ray Data. Nothing here imports Spark or
Ray Data, so a slot that reads them starts a second sooner.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar

import pyarrow as pa
import ray
from ray.exceptions import RayError

from slackwater.ingest.positions import check_name, digest_of, facts_of, position_of, refused
from slackwater.runtime.errors import IngestError
from slackwater.runtime.model.exact_casts import cast_exactly
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import shown, text_of
from slackwater.runtime.sources.spec import END_OF_INPUT, Block, EndOfInput, Partition, Replay

BLOCK_ROWS = 10_000
"""Most rows of a block; Spark's Arrow batches are no larger either."""


@dataclass(frozen=True, eq=False)
class FrameInput:
    """Rows in Ray's object store. `spark` and `ray_dataset` make it.

    Pickles within Ray (as an argument of a task or an actor call), and keeps the blocks alive
    wherever it travels.

    Attributes:
        refs: references to Arrow tables, one for each part, in order.
        columns: columns of all parts; a part may lack some, or have narrower types.
        kind, part: words for the rows and a part of them.
        ends_with_driver: the blocks end with the process that made them.
    """

    ends_with_driver: ClassVar[bool] = True
    reads_inline: ClassVar[bool] = True
    blocks_stay: ClassVar[bool] = True
    is_history: ClassVar[bool] = True
    replay: ClassVar[Replay] = "exact"
    refs: tuple[ray.ObjectRef[pa.Table], ...] = field(repr=False)
    columns: pa.Schema
    kind: str = "spark frame"
    part: str = "partition"

    def describe(self) -> str:
        """Return the number of parts."""
        count = len(self.refs)
        return f"{self.kind} ({count_of(count, self.part)})"

    def schema(self) -> pa.Schema:
        """Return the columns.

        Raises:
            IngestError: Ray has been closed, and the blocks with it.
        """
        if not ray.is_initialized():
            raise IngestError(
                f"{self.describe()}: its rows ended with the cluster that held them; prepare it "
                "again, and run the flow before that cluster is closed"
            )
        return self.columns

    def open(self, name: str = "", at: bytes | None = None) -> FrameReader:
        """Fetch the first part that has rows, so that the first poll returns some.

        Or the part of a block's position.

        Raises:
            IngestError: as `schema`, or of that part as `FrameReader.poll`; or the position is of
                another frame.
        """
        check_name(name, self.describe())
        self.schema()
        reader = FrameReader(self, *self._place_of(at))
        reader.fetch_first()
        return reader

    def open_part(self, part: int, at: bytes | None) -> FrameReader:
        """Open one part; its rows may be on their way.

        It begins at its first row, or at a block's position.

        Raises:
            IngestError: as `open`.
        """
        self.schema()
        alone = replace(self, refs=self.refs[part : part + 1])
        return FrameReader(alone, *alone._place_of(at))

    def _place_of(self, at: bytes | None) -> tuple[int, int]:
        """Return the part and row of a position."""
        if at is None:
            return 0, 0
        who = self.describe()
        facts = facts_of(at, who=who, kind=self.kind, of=digest_of(str(self.columns)), count=3)
        part, row = int(facts[0]), int(facts[1])
        if part >= len(self.refs) or self.refs[part].hex() != facts[2]:
            raise refused(
                who, f"its rows were prepared again since: {self.part} {part + 1} differs"
            )
        return part, row


@dataclass(frozen=True, eq=False)
class FrameParts:
    """Rows in Ray's object store, whose parts are partitions. `spark` makes it.

    Attributes:
        frame: the rows.
        rows: number of rows of each part.
        firsts: first row of each part.
    """

    ends_with_driver: ClassVar[bool] = True
    reads_inline: ClassVar[bool] = True
    blocks_stay: ClassVar[bool] = True
    is_history: ClassVar[bool] = True
    replay: ClassVar[Replay] = "exact"
    most_open: ClassVar[int] = 8
    """So many are on their way at once."""
    frame: FrameInput
    rows: tuple[int, ...] = field(repr=False)
    firsts: tuple[pa.RecordBatch, ...] = field(repr=False)

    def describe(self) -> str:
        """Return the number of parts, and that each is a partition."""
        return f"{self.frame.describe()}, each read in its own order"

    def schema(self) -> pa.Schema:
        """Return the columns; errors as `FrameInput.schema`."""
        return self.frame.schema()

    def partitions(self) -> list[Partition]:
        """Return the parts, by their numbers."""
        return [Partition(f"{part:05}", rows) for part, rows in enumerate(self.rows)]

    def first_row(self, name: str, columns: list[str]) -> pa.RecordBatch:
        """Return the first row of a part."""
        return self.firsts[int(name)].select(columns)

    def open(self, name: str = "", at: bytes | None = None) -> FrameReader:
        """Open a part.

        Raises:
            IngestError: there is no such part; or as `FrameInput.open`.
        """
        if name not in {partition.name for partition in self.partitions()}:
            raise IngestError(f"{self.describe()}: there is no partition {shown(name)}")
        return self.frame.open_part(int(name), at)


class FrameReader:
    """Fetches one part at a time, and the next meanwhile; hands over its blocks.

    Args:
        source: frame that is read.
        part: part to begin with.
        row: row of that part to begin with.
    """

    def __init__(self, source: FrameInput, part: int, row: int) -> None:
        self._source = source
        self._who = source.describe()
        self._schema = source.columns
        self._refs = deque(source.refs[part:])
        self._part, self._row = part - 1, row  # the part at hand, and the first row of the next
        self._blocks: Iterator[Block] = iter(())
        self._next: Future[pa.Table] | None = None
        self._fetch()

    def fetch_first(self) -> None:
        """Wait for the first part that has rows."""
        block: Block | EndOfInput | None = None
        while block is None and self._next is not None:
            wait([self._next])
            block = self.poll()
        if isinstance(block, Block):
            self._blocks = chain([block], self._blocks)

    def poll(self) -> Block | EndOfInput | None:
        """Return the next block, None if it is on its way, or END_OF_INPUT.

        Raises:
            IngestError: a block is lost: the node that held it, or the driver, has died. Or a value
                does not fit the type of its column.
        """
        while (block := next(self._blocks, None)) is None:
            if self._next is None:
                return END_OF_INPUT
            if not self._next.done():
                return None
            try:
                table = self._next.result()
            except RayError as problem:
                raise IngestError(
                    f"{self._who}: a block is lost, since its node or the driver is gone "
                    f"({type(problem).__name__}); prepare it again"
                ) from problem
            self._part, first, self._row = self._part + 1, self._row, 0
            self._blocks = self._of(self._fitted(table.slice(first)), self._part, first)
            self._fetch()
        return block

    def _of(self, table: pa.Table, part: int, row: int) -> Iterator[Block]:
        """Yield the blocks of a part from a row on."""
        source = self._source
        of = digest_of(str(self._schema))
        for rows in table.to_batches(max_chunksize=BLOCK_ROWS):
            facts: list[str | int] = [part, row, source.refs[part].hex()]
            yield Block(rows, position_of(source.kind, of, facts))
            row += len(rows)

    def close(self) -> None:
        """Drop the blocks. Idempotent."""
        self._refs.clear()
        self._next = None
        self._blocks = iter(())

    def _fitted(self, table: pa.Table) -> pa.Table:
        """Return a part with all columns: Spark's lack nullability, Ray's differ in types."""
        columns = [
            self._column(table[field.name], field)
            if field.name in table.column_names
            else pa.nulls(len(table), field.type)
            for field in self._schema
        ]
        return pa.table(columns, schema=self._schema)

    def _column(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        try:
            chunks = [cast_exactly(chunk, field.type) for chunk in column.chunks]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
            raise IngestError(
                f"{self._who}: column {field.name!r} is {column.type} here and {field.type} in "
                f"all, and a value does not fit: {text_of(problem)}; cast it before, with "
                "map_batches"
            ) from problem
        return pa.chunked_array(chunks, field.type)

    def _fetch(self) -> None:
        self._next = self._refs.popleft().future() if self._refs else None

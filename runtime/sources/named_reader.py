"""Reader of an input whose errors name its source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa

from slackwater.runtime.errors import IngestError, RowsGone, SchemaError, SlackwaterError
from slackwater.runtime.model.copies import copied_block
from slackwater.runtime.model.schema import NullError
from slackwater.runtime.model.whose_code import (
    RUNNING,
    is_ours,
    let_ctrl_c_pass,
    raised_by_us,
    where_raised,
)
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import MOST_SHOWN, a_kind, in_words, is_of, shown
from slackwater.runtime.sources.input_part import name_of_input, whole_input
from slackwater.runtime.sources.spec import (
    END_OF_INPUT,
    BadRows,
    Block,
    EndOfInput,
    Input,
    SourceReader,
    place_of,
    traits_of,
)

__all__ = ["CountingReader", "NamedReader", "called_by_name", "open_named", "placed"]

_ROWS = (pa.RecordBatch, BadRows)  # a union would be made at each poll


class CountingReader(SourceReader, Protocol):
    """An open input whose errors say whose they are."""

    def poll(self) -> Block | EndOfInput | None:
        """Return the next block; see `NamedReader`."""
        ...

    @property
    def clock_counts(self) -> dict[str, int]:
        """Counts of clocks; see `NamedReader`."""
        ...

    @property
    def place(self) -> str:
        """Where the last block comes from; see `NamedReader`."""
        ...

    @property
    def where(self) -> str:
        """The same for errors; see `NamedReader`."""
        ...

    def line_of(self, row: int) -> int | None:
        """Return the line of a row of the last block; see `NamedReader`."""
        ...

    def ack(self, at: bytes) -> None:
        """Tell the input that no restore asks for rows before a position."""
        ...

    def release(self) -> None:
        """Free what it holds, without waiting: it is not read on."""
        ...


def open_named(
    source: str,
    input: Input,  # noqa: A002 - as in SourceSpec
    at: bytes | None = None,
    name: str = "",
    left: int | None = None,
) -> CountingReader:
    """Open an input for reading by its source's name; arguments and errors: as `NamedReader`."""
    traits = traits_of(input)
    if traits.is_named:  # its reader has another one read by name
        place = place_of(traits, name, at)
        more = () if left is None else (left,)
        named: CountingReader = called_by_name(source, input, "open", *place, *more)
        return named
    return NamedReader(source, input, at, name, left)


@contextmanager
def placed(reader: CountingReader | None, partition: str = "") -> Iterator[None]:
    """Say of which partition and file rows are that are refused."""
    try:
        yield
    except SchemaError as problem:
        where = [f"partition {shown(partition)}"] if partition else []
        if reader is not None and reader.place:
            line = reader.line_of(problem.place) if isinstance(problem, NullError) else None
            where += [reader.where if line is None else f"{reader.where}, line {line}"]
        if not where:
            raise
        raise SchemaError(f"{problem} (in {', '.join(where)})") from problem


class NamedReader:
    """Opens an input, and reads it.

    Args:
        source: the name of the source.
        input: input that it reads.
        at: position of a block of it; None if it is its start.
        name: name of its partition.
        left: number of rows from the position on, as the input says; None if unknown.

    Raises:
        IngestError: the user's code raised; with the source, the class, the line, and its
            traceback.
        SchemaError: `open` returned no reader.
    """

    def __init__(
        self,
        source: str,
        input: Input,  # noqa: A002 - as in SourceSpec
        at: bytes | None = None,
        name: str = "",
        left: int | None = None,
    ) -> None:
        self._source, self._left = source, left
        traits = traits_of(input)
        self._copies = not traits.blocks_stay
        self._has_positions = traits.takes_place
        self._is_ours = traits.reads_inline and is_ours(whole_input(input))
        self._reader: SourceReader = called_by_name(
            source, input, "open", *place_of(traits, name, at), is_ours=self._is_ours
        )
        missing = [method for method in ("poll", "close") if not hasattr(self._reader, method)]
        if missing:
            raise SchemaError(
                f"source {source!r}: {name_of_input(input)}.open returned "
                f"{a_kind(self._reader)}, which has no {missing[0]}(); it must return a reader "
                "with poll() and close()"
            )

    def poll(self) -> Block | EndOfInput | None:
        """Return what the reader returns, rows in memory that it cannot fill again.

        A block of an input that cannot be opened at a position has none.

        Raises:
            IngestError: as when it was opened; or it has more or fewer rows than its input says.
            SchemaError: it returned no record batch.
        """
        polled: Any = self._called("poll")
        if polled is None:
            return END_OF_INPUT if self._left == 0 else None
        if isinstance(polled, EndOfInput):
            self._count(0, is_end=True)
            return polled
        rows, at = polled if isinstance(polled, Block) else (polled, None)
        if not isinstance(rows, _ROWS):
            raise self._no_rows(rows, is_of_block=rows is not polled)
        if self._has_positions and not isinstance(at, bytes | None):
            raise SchemaError(
                f"source {self._source!r}: {type(self._reader).__qualname__}.poll returned a Block "
                f"whose position is {a_kind(at)}; write it as bytes, or None"
            )
        if self._copies:
            is_bad = isinstance(rows, BadRows)
            rows = BadRows(copied_block(rows.rows)) if is_bad else copied_block(rows)
        if not isinstance(rows, BadRows):
            self._count(len(rows))
        return Block(rows, at if self._has_positions else None)

    def _count(self, rows: int, *, is_end: bool = False) -> None:
        """Count rows that it returned; refuse more, or fewer, than its input says."""
        if self._left is None:
            return
        self._left -= rows
        if self._left < 0 or (is_end and self._left):
            kind, count = type(self._reader).__qualname__, count_of(abs(self._left), "row")
            raise IngestError(
                f"source {self._source!r}: {kind}.poll returned {count} "
                f"{'more' if self._left < 0 else 'fewer'} than rows= of its partition says; "
                "let partitions() say how many there are, or omit rows="
            )

    def _no_rows(self, rows: object, *, is_of_block: bool) -> SchemaError:
        return SchemaError(
            f"source {self._source!r}: {type(self._reader).__qualname__}.poll returned "
            f"{'a Block of ' if is_of_block else ''}{a_kind(rows)}; it must return a "
            "pyarrow.RecordBatch, a Block of one, None (nothing now) or END_OF_INPUT (make one of "
            "a table with table.combine_chunks().to_batches()[0], of columns with "
            "pyarrow.record_batch({name: values}))"
        )

    @property
    def clock_counts(self) -> dict[str, int]:
        """Counts of a reader that compares clocks: {what: how often}."""
        return dict(getattr(self._reader, "clock_counts", {}))

    @property
    def place(self) -> str:
        """Where the last block comes from, such as its file; empty: it does not say."""
        return str(getattr(self._reader, "place", ""))

    @property
    def where(self) -> str:
        """The same for errors, with the first row of a part of a file."""
        return str(getattr(self._reader, "where", self.place))

    def line_of(self, row: int) -> int | None:
        """Return the line of a row of the last block; None if unknown."""
        find = getattr(self._reader, "line_of", None)
        return None if find is None else find(row)

    def ack(self, at: bytes) -> None:
        """Tell the reader, if it has an `ack`, that rows before a position are safe.

        Raises:
            IngestError: the user's code raised.
        """
        if hasattr(self._reader, "ack"):
            called_by_name(self._source, self._reader, "ack", at, is_ours=self._is_ours)

    def release(self) -> None:
        """Close the reader, which is not read on."""
        self.close()

    def close(self) -> None:
        """Close the reader."""
        self._called("close")

    def _called(self, method: str) -> Any:
        return called_by_name(self._source, self._reader, method, is_ours=self._is_ours)


def called_by_name(
    source: str, of: object, method: str, *given: object, is_ours: bool = False
) -> Any:
    """Return what a method of an input, or of its reader, returns.

    Args:
        source: source of the reader.
        of: the input or the reader.
        method: name of the method.
        given: arguments of the method.
        is_ours: whether no code of a user runs.

    Raises:
        IngestError: the user's code raised, `sys.exit()` too: that would end the slot, or the
            user's process, without a word of whose it was. Errors that our code raises pass.
        RowsGone: the user's code raised it.
    """
    token = None if is_ours else RUNNING.set(source)
    try:
        return getattr(of, method)(*given)
    except BaseException as problem:
        if is_of(problem, SlackwaterError) and (is_ours or raised_by_us(problem)):
            raise
        let_ctrl_c_pass(problem)
        if is_of(problem, RowsGone):  # its partition says which
            raise
        raise _named(problem, source, f"{name_of_input(of)}.{method}") from problem
    finally:
        if token is not None:
            RUNNING.reset(token)


def _named(problem: BaseException, source: str, what: str) -> IngestError:
    at, lines = where_raised(problem)
    way_out = ""
    if what.endswith(".poll"):
        way_out = ", or let it return what it has and go on, or let retry= open it again"
    return IngestError(
        f"source {source!r}: {what} raised {in_words(problem, MOST_SHOWN)}{at}; mend "
        f"it there{way_out}\n{lines}"
    )

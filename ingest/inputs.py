"""What all file inputs share: their files, one schema for all of them, errors that name both."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from slackwater.ingest.paths import files_of, no_files, overlap, print_of
from slackwater.ingest.records import BadText
from slackwater.runtime.errors import IngestError, SchemaError, SettingError, way_out
from slackwater.runtime.expressions.nearest import listed, nearest
from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput


@dataclass(frozen=True, kw_only=True)
class FileInput(ABC):
    """Files of one kind. `parquet`, `jsonl` and `csv` make them.

    Attributes:
        pattern: as the user wrote it.
        folder: where a relative pattern starts.
        columns: to read; None: all.
        batch_rows: at most this many at a time.
        types: ((column, type), …) said by the user.
    """

    pattern: str
    folder: str
    columns: tuple[str, ...] | None
    batch_rows: int
    types: tuple[tuple[str, pa.DataType], ...] = ()

    reads_inline: ClassVar[bool] = True
    is_history: ClassVar[bool] = True
    kind: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    untold: ClassVar[str]
    """The way out when no file shows which columns there are."""

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise SettingError(f"batch_rows={self.batch_rows} must be at least 1")
        if self.columns is not None and not self.columns:
            raise SettingError("columns=[] reads nothing; name some, or None for all")

    def files(self) -> list[str]:
        """Return the files there are on this node now, sorted by name.

        Raises:
            IngestError: none; says what is there instead.
        """
        found = self._found()
        if not found:
            raise no_files(self.kind, self.pattern, folder=self.folder, suffixes=self.suffixes)
        return found

    def describe(self) -> str:
        """Return kind, path and number of files."""
        count = len(self._found())
        return f"{self.kind} {self.pattern} ({count} file{'' if count == 1 else 's'})"

    def schema(self) -> pa.Schema:
        """Return the columns to read; one of which nothing but nulls are shown has type null.

        Raises:
            IngestError: no file, or one that cannot be read.
            SchemaError: a column is not there or occurs twice, or no file has any.
        """
        return self._schema_of(self.files())

    def open(self) -> FileReader:
        """Open the files, at the first row of the first.

        Raises:
            IngestError: as `schema`.
        """
        files = self.files()
        return FileReader(self._read(files, self._schema_of(files)), self._line_of)

    def fingerprint(self) -> tuple[str, str]:
        """Return what the files are now, in words and as a digest, without reading all of them.

        Raises:
            IngestError: no file, or one that cannot be read.
        """
        try:
            return print_of(self.files())
        except OSError as problem:
            raise IngestError(f"{self.kind} {self.pattern}: cannot be read: {problem}") from problem

    def reads_at(self, place: str, *, kind: str, is_file: bool) -> str | None:
        """Return what of `place`, where a sink writes, this input reads; None: nothing.

        Args:
            place: a file, or a folder of parts.
            kind: of the sink, "parquet" or "jsonl".
            is_file: which of the two `place` is.
        """
        part = place if is_file else os.path.join(place, f"part-00000001.{kind}")
        return overlap(self.pattern, part, folder=self.folder, suffixes=self.suffixes)

    @abstractmethod
    def _shown(self, path: str) -> pa.Schema | None:
        """Return all columns of a file, null ones where it shows no type; None: it is empty."""

    @abstractmethod
    def _blocks(self, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file, in blocks of any size, with the columns of `schema`.

        Raises:
            SchemaError: its columns are not those of `schema`.
            BadText: a value cannot be read.
        """

    def _line_of(self, path: str, row: int) -> int | None:
        """Return the line of a row of a file, counted from 0; None: it has no lines."""
        del path, row
        return None

    def _found(self) -> list[str]:
        return files_of(self.pattern, folder=self.folder, suffixes=self.suffixes)

    def _schema_of(self, files: list[str]) -> pa.Schema:
        """Return the columns to read: those of the first file, with the types that files show."""
        whole: pa.Schema | None = None
        first = files[0]
        for position, path in enumerate(files):
            with self._naming(files, position):
                shown = self._shown(path)
            if shown is None:
                continue
            if whole is None:
                whole, first = shown, path
            else:
                whole = self._merged(whole, shown, path)
            if self._is_settled(whole):
                break
        if whole is None:
            raise SchemaError(
                f"{self.describe()}: types cannot be told, no file has any rows; {self.untold}"
            )
        return self._chosen(self._said(whole, first), first)

    def _merged(self, whole: pa.Schema, shown: pa.Schema, path: str) -> pa.Schema:
        """Return the columns of the first file, with what a later one shows of their types."""
        del path
        fields = []
        for field in whole:
            at = shown.get_field_index(field.name)
            is_shown = pa.types.is_null(field.type) and at >= 0
            fields.append(shown.field(at) if is_shown else field)
        return pa.schema(fields)

    def _is_settled(self, whole: pa.Schema) -> bool:
        """Return whether later files show nothing more."""
        told = {name for name, _ in self.types}
        return not any(pa.types.is_null(one.type) and one.name not in told for one in whole)

    def _said(self, whole: pa.Schema, path: str) -> pa.Schema:
        """Return the columns with the types that `types=` says."""
        told = dict(self.types)
        for name in told:
            if name not in whole.names and name not in (self.columns or ()):
                raise self._no_column(name, whole, path, option="types=: ")
        return pa.schema([(one.name, told.get(one.name, one.type)) for one in whole])

    def _chosen(self, whole: pa.Schema, path: str) -> pa.Schema:
        fields = []
        for name in self.columns or whole.names:
            places = whole.get_all_field_indices(name)
            if not places:
                raise self._no_column(name, whole, path)
            if len(places) > 1:
                raise SchemaError(
                    f"{self.kind} {path}: column name {name!r} occurs {len(places)} times, so it "
                    "says nothing; rename all but one, or choose others with columns=[…]"
                )
            fields.append(whole.field(places[0]))
        return pa.schema(fields)

    def _no_column(
        self, name: str, whole: pa.Schema, path: str, *, option: str = ""
    ) -> SchemaError:
        return SchemaError(
            f"{self.kind} {path}: {option}there is no column {name!r}; the nearest is "
            f"{nearest(name, whole.names)!r}; there are: {listed(whole.names)}"
        )

    def _read(
        self, files: list[str], schema: pa.Schema
    ) -> Generator[tuple[str, pa.RecordBatch], None, None]:
        for position, path in enumerate(files):
            with self._naming(files, position):
                for block in self._blocks(path, schema):
                    for start in range(0, len(block), self.batch_rows):
                        yield path, block.slice(start, self.batch_rows)

    def _check_names(self, path: str, found: pa.Schema, expected: pa.Schema) -> None:
        """Check that a file has the columns of the others; where all are read, no more."""
        for name in expected.names:
            places = found.get_all_field_indices(name)
            if not places:
                raise SchemaError(
                    f"{self.kind} {path}: column {name!r} is missing, which the first file "
                    f"has; there are: {listed(found.names)}; {SAME_COLUMNS}"
                )
            if len(places) > 1:
                self._chosen(found, path)
        extra = [name for name in found.names if expected.get_field_index(name) < 0]
        if extra and self.columns is None:
            raise SchemaError(
                f"{self.kind} {path}: column {extra[0]!r} is not in the first file; {SAME_COLUMNS}"
            )

    @contextmanager
    def _naming(self, files: list[str], position: int) -> Iterator[None]:
        """Make an error of Arrow, the file system or a reader one that names the file."""
        which = f"{self.kind} {files[position]} (file {position + 1} of {len(files)} of "
        which += f"{self.pattern})"
        try:
            yield
        except BadText as problem:
            raise IngestError(f"{which}, {problem}") from problem
        except (pa.ArrowException, OSError, UnicodeError) as problem:
            raise IngestError(
                f"{which} cannot be read: {problem}; "
                f"{way_out(problem, 'write it again, or move it away')}"
            ) from problem


SAME_COLUMNS = "all files of an input need the same columns; rewrite it, or choose with columns=[…]"


class FileReader:
    """Files being read, one after the other; one is open at a time.

    Args:
        blocks: (file, block) of each block.
        line_of: returns the line of a row of a file.

    Attributes:
        place: the file of the last block.
    """

    def __init__(
        self,
        blocks: Generator[tuple[str, pa.RecordBatch], None, None],
        line_of: Callable[[str, int], int | None],
    ) -> None:
        self._blocks, self._line_of = blocks, line_of
        self._rows = self._rows_before = 0  # all so far, and those of earlier files
        self._failure: IngestError | None = None
        self.place = ""

    def poll(self) -> pa.RecordBatch | EndOfInput:
        """Return the next block, or END_OF_INPUT; a failed reader stays failed."""
        if self._failure is not None:
            raise self._failure
        try:
            path, block = next(self._blocks)
        except StopIteration:
            return END_OF_INPUT
        except IngestError as failure:
            self._failure = failure
            raise
        if path != self.place:
            self.place, self._rows_before = path, self._rows
        self._rows += len(block)
        return block

    def line_of(self, row: int) -> int | None:
        """Return the line of a row of the last file, by its place in the input; reads it again."""
        return self._line_of(self.place, row - self._rows_before)

    def close(self) -> None:
        """Close the file that is open. Safe to call twice."""
        self._blocks.close()

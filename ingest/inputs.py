"""What all file inputs share: their files, one schema for all of them, errors that name both."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from ingest.paths import files_of, no_files, overlap, print_of
from runtime.errors import IngestError, SchemaError, SettingError
from runtime.expressions.nearest import listed, nearest
from runtime.sources.spec import END_OF_INPUT, EndOfInput


@dataclass(frozen=True, kw_only=True)
class FileInput(ABC):
    """Files of one kind. `parquet`, `jsonl` and `csv` make them.

    Attributes:
        pattern: as the user wrote it.
        folder: where a relative pattern starts.
        columns: to read; None: all.
        batch_rows: at most this many at a time.
    """

    pattern: str
    folder: str
    columns: tuple[str, ...] | None
    batch_rows: int

    reads_inline: ClassVar[bool] = True
    is_history: ClassVar[bool] = True
    kind: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    untold: ClassVar[str]
    """The way out when the type of a column cannot be told."""

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
        """Return the columns to read, as the first file has them that shows all their types.

        Raises:
            IngestError: no file, or one that cannot be read.
            SchemaError: a column is not there, or its type cannot be told.
        """
        return self._schema_of(self.files())

    def open(self) -> FileReader:
        """Open the files, at the first row of the first.

        Raises:
            IngestError: as `schema`.
        """
        files = self.files()
        return FileReader(self._read(files, self._schema_of(files)))

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
    def _whole_schema(self, path: str) -> pa.Schema | None:
        """Return all columns of a file; None when it is empty and so shows none."""

    @abstractmethod
    def _blocks(self, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file, in blocks of any size.

        Raises:
            SchemaError: its columns are not those of `schema`.
        """

    def _found(self) -> list[str]:
        return files_of(self.pattern, folder=self.folder, suffixes=self.suffixes)

    def _schema_of(self, files: list[str]) -> pa.Schema:
        unclear = "no file has any rows"
        for position, path in enumerate(files):
            with self._naming(files, position):
                whole = self._whole_schema(path)
            if whole is None:
                continue
            schema = self._chosen(whole, path)
            nulls = [field.name for field in schema if pa.types.is_null(field.type)]
            if not nulls:
                return schema
            unclear = f"nothing but nulls in column {nulls[0]!r} of {path}"
        raise SchemaError(f"{self.describe()}: types cannot be told, {unclear}; {self.untold}")

    def _chosen(self, whole: pa.Schema, path: str) -> pa.Schema:
        fields = []
        for name in self.columns or whole.names:
            index = whole.get_field_index(name)
            if index < 0:
                raise SchemaError(
                    f"{self.kind} {path}: there is no column {name!r}; the nearest is "
                    f"{nearest(name, whole.names)!r}; there are: {listed(whole.names)}"
                )
            fields.append(whole.field(index))
        return pa.schema(fields)

    def _read(self, files: list[str], schema: pa.Schema) -> Generator[pa.RecordBatch, None, None]:
        for position, path in enumerate(files):
            with self._naming(files, position):
                for block in self._blocks(path, schema):
                    for start in range(0, len(block), self.batch_rows):
                        yield block.slice(start, self.batch_rows)

    def _check_agreement(self, path: str, found: pa.Schema, expected: pa.Schema) -> None:
        """Check that a file has the columns of the others; where all are read, no more."""
        rule = "all files of an input need the same columns; rewrite it, or choose with columns=[…]"
        for field in expected:
            index = found.get_field_index(field.name)
            if index < 0:
                raise SchemaError(
                    f"{self.kind} {path}: column {field.name!r} is missing, which the first file "
                    f"has; there are: {listed(found.names)}; {rule}"
                )
            if found.field(index).type != field.type:
                raise SchemaError(
                    f"{self.kind} {path}: column {field.name!r} has type "
                    f"{found.field(index).type}, and {field.type} in the first file; {rule}"
                )
        extra = [name for name in found.names if expected.get_field_index(name) < 0]
        if extra and self.columns is None:
            raise SchemaError(
                f"{self.kind} {path}: column {extra[0]!r} is not in the first file; {rule}"
            )

    @contextmanager
    def _naming(self, files: list[str], position: int) -> Iterator[None]:
        """Make an error of Arrow or the file system one that names the file."""
        try:
            yield
        except (pa.ArrowException, OSError) as problem:
            raise IngestError(
                f"{self.kind} {files[position]} (file {position + 1} of {len(files)} of "
                f"{self.pattern}) cannot be read: {problem}; write it anew, or move it away"
            ) from problem


class FileReader:
    """Files being read, one after the other; one is open at a time."""

    def __init__(self, blocks: Generator[pa.RecordBatch, None, None]) -> None:
        self._blocks = blocks
        self._failure: IngestError | None = None

    def poll(self) -> pa.RecordBatch | EndOfInput:
        """Return the next block, or END_OF_INPUT; a failed reader stays failed."""
        if self._failure is not None:
            raise self._failure
        try:
            return next(self._blocks, END_OF_INPUT)
        except IngestError as failure:
            self._failure = failure
            raise

    def close(self) -> None:
        """Close the file that is open. Safe to call twice."""
        self._blocks.close()

"""Share the code of all file inputs: their files, one schema, errors that name both."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from functools import lru_cache
from hashlib import sha256
from typing import ClassVar, Literal, NamedTuple, Self

import pyarrow as pa

from slackwater.ingest.file_places import FILE_FACTS, FilePlace, place_of
from slackwater.ingest.hive import (
    FolderColumns,
    folder_columns,
    types_of_folders,
    value_of_folder,
)
from slackwater.ingest.memory import check_batch_rows
from slackwater.ingest.paths import content_of, files_of, no_files, overlap, passed_over, print_of
from slackwater.ingest.positions import check_name, digest_of, facts_of
from slackwater.ingest.record_walk import KEPT_BYTES, Bad, BadText
from slackwater.runtime.errors import IngestError, SchemaError, SettingError, way_out
from slackwater.runtime.model.meeting_types import meeting_type
from slackwater.runtime.model.schema import is_read
from slackwater.runtime.nearest import choices, listed
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import shown, text_of
from slackwater.runtime.sources.spec import END_OF_INPUT, BadRows, Block, EndOfInput, Replay
from slackwater.runtime.terminal_text import sanitized


class Good(NamedTuple):
    """Rows of a file.

    Attributes:
        block: the rows.
        lines: returns the line of each; None if the file has no lines.
    """

    block: pa.RecordBatch
    lines: Callable[[], list[int]] | None = None


class Mark(NamedTuple):
    """Place in a file from which it can be read on.

    Attributes:
        numbers: numbers that its kind of file has; empty: its start.
    """

    numbers: tuple[int, ...] = ()


Part = Good | list[Bad] | Mark
"""A mark is the place of the part after it."""
Differing = Literal["error", "first", "union"]


class Layout(NamedTuple):
    """Columns of an input, and where they are.

    Attributes:
        schema: all columns.
        read: columns of the files, at least one.
        of_folders: columns of folders' names.
    """

    schema: pa.Schema
    read: pa.Schema
    of_folders: FolderColumns

    def only(self, columns: list[str]) -> Layout:
        """Return the layout with some of its columns."""
        read = [field for field in self.read if field.name in columns] or list(self.read)[:1]
        schema = pa.schema([field for field in self.schema if field.name in columns])
        return Layout(schema, pa.schema(read), self.of_folders)

    def completed(self, block: pa.RecordBatch, path: str) -> pa.RecordBatch:
        """Return rows of a file with the columns of its folders."""
        if self.read is self.schema or self.read == self.schema:
            return block
        columns = []
        for field in self.schema:
            at = self.read.get_field_index(field.name)
            if at >= 0:
                columns.append(block.column(at))
            else:
                value = value_of_folder(self.of_folders[path][field.name], field, path)
                columns.append(pa.repeat(value, len(block)))
        return pa.record_batch(columns, schema=self.schema)


_NO_SETTINGS = frozenset({"pattern", "folder", "batch_rows", "planned_files", "only_first"})


@dataclass(frozen=True, kw_only=True)
class FileInput(ABC):
    """Files of one kind. `parquet`, `jsonl` and `csv` make it.

    Attributes:
        pattern: pattern as the user wrote it.
        folder: start of a relative pattern.
        columns: columns to read; None if all are read.
        batch_rows: most rows at a time.
        types: ((column, type), …) given by the user.
        differing: columns if files differ: "error", "first" (the first file's), "union" (all).
        hive: whether folders such as `day=2024-01-02` are columns; None if that depends on whether
            all files have them.
        planned_files: files as a plan has fixed them; None if the folder is listed now.
    """

    pattern: str
    folder: str
    columns: tuple[str, ...] | None
    batch_rows: int
    types: tuple[tuple[str, pa.DataType], ...] = ()
    differing: Differing = "error"
    hive: bool | None = None
    planned_files: tuple[str, ...] | None = None

    reads_inline: ClassVar[bool] = True
    blocks_stay: ClassVar[bool] = True
    is_history: ClassVar[bool] = True
    replay: ClassVar[Replay] = "exact"
    kind: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    untold: ClassVar[str]
    """The hint if no file shows any columns."""

    def __post_init__(self) -> None:
        check_batch_rows(self.batch_rows)
        if self.columns is not None and not self.columns:
            raise SettingError("columns=[] reads nothing; name some, or None for all")

    def planned(self) -> Self:
        """Return the input with its files fixed, so that later ones move no row.

        Raises:
            IngestError: no file.
        """
        return replace(self, planned_files=tuple(self.files()))

    def files(self) -> list[str]:
        """Return the planned files, or those on this node now, sorted by name.

        Raises:
            IngestError: no file; names the nearest ones.
        """
        paths = self._found()
        if not paths:
            raise no_files(self.kind, self.pattern, folder=self.folder, suffixes=self.suffixes)
        return paths

    def describe(self) -> str:
        """Return kind, path, number of files, and those beside them that are not read."""
        beside = self._beside()
        return f"{self._which()}{beside and f'; {beside}'}"

    def notes(self) -> list[str]:
        """Return what a report has to say of the files: those that are not read."""
        beside = self._beside()
        return [f"{self._which()}: {beside}"] if beside else []

    def _which(self) -> str:
        pattern = sanitized(self.pattern, in_line=True)
        return f"{self.kind} {pattern} ({count_of(len(self._found()), 'file')})"

    def _beside(self) -> str:
        others = passed_over(
            self.pattern, self._found(), folder=self.folder, suffixes=self.suffixes
        )
        if not others:
            return ""
        names = [sanitized(os.path.basename(path), in_line=True) for path in others]
        return f"{count_of(len(others), 'file')} beside not read: {_few(names)}"

    def schema(self) -> pa.Schema:
        """Return the columns to read; a column that shows only nulls has type null.

        Raises:
            IngestError: no file, or an unreadable one.
            SchemaError: a column is missing or occurs twice, or no file has columns.
        """
        return self.layout(self.files()).schema

    def open(self, name: str = "", at: bytes | None = None) -> FileReader:
        """Open the files, at the first row or at a block's position.

        Raises:
            IngestError: as `schema`; or the position is of another input or file, or of one that
                has changed.
        """
        check_name(name, self._which())
        files = self.files()
        place = FilePlace() if at is None else self.place_of(at, files)
        layout = self.layout(files)
        return FileReader(
            self.read(files, layout, place), lambda path, row: self.line_of(path, row, layout)
        )

    def place_of(self, at: bytes, files: list[str]) -> FilePlace:
        """Return the place of a position in some files.

        Raises:
            IngestError: as `open`.
        """
        who = self._which()
        facts = facts_of(at, who=who, kind=self.kind, of=self._digest, count=FILE_FACTS)
        with self._naming_all():
            return place_of(facts, files, who=who)

    @contextmanager
    def _naming_all(self) -> Iterator[None]:
        """Make an error of the system name the input."""
        try:
            yield
        except OSError as problem:
            raise IngestError(
                f"{self.kind} {self.pattern}: cannot be read: {text_of(problem)}; "
                f"{way_out(problem, 'write it again, or move it away')}"
            ) from problem

    def fingerprint(self) -> tuple[str, str]:
        """Return the files' state, in words and as a digest, without reading them whole.

        The digest covers the settings by which they are read.

        Raises:
            IngestError: no file, or an unreadable one.
        """
        with self._naming_all():
            words, digest = print_of(self.files())
        words = ", ".join([words, *self._settings_in_words()])
        return words, sha256(f"{digest} {self._settings()}".encode()).hexdigest()

    @property
    def _digest(self) -> str:
        return digest_of(self.kind, self._settings())

    def _settings(self) -> str:
        """Return the settings that change rows, as text."""
        names = {setting.name for setting in fields(self)} - _NO_SETTINGS
        return repr([(name, getattr(self, name)) for name in sorted(names)])

    def _settings_in_words(self) -> Iterator[str]:
        """Yield the settings that change rows, as far as the user has set them."""
        for setting in fields(self):
            value = getattr(self, setting.name)
            usual = None if setting.default is MISSING else setting.default
            if setting.default_factory is not MISSING:
                usual = setting.default_factory()
            if setting.name not in _NO_SETTINGS and value != usual:
                yield f"{setting.name}={shown(value)}"

    def reads_at(self, place: str, *, kind: str, is_file: bool) -> str | None:
        """Return the path that this input reads of a sink's `place`; None if none.

        Args:
            place: a file, or a folder of parts.
            kind: kind of the sink, "parquet", "jsonl" or "csv".
            is_file: whether `place` is a file.
        """
        part = place if is_file else os.path.join(place, f"part-00000001.{kind}")
        return overlap(self.pattern, part, folder=self.folder, suffixes=self.suffixes)

    def of_first_rows(self, columns: tuple[str, ...]) -> Self:
        """Return the input for a look at the first rows of files."""
        return replace(self, columns=columns, batch_rows=1)

    def groups_of(self, files: list[str]) -> list[list[int]] | None:
        """Return the rows of each file's row groups; None if files do not tell.

        Raises:
            IngestError: a file cannot be read.
        """
        del files
        return None

    @abstractmethod
    def _shown(self, path: str) -> pa.Schema | None:
        """Return a file's columns, with type null if not shown; None if empty."""

    @abstractmethod
    def _parts(self, path: str, schema: pa.Schema, mark: Mark) -> Iterator[Part]:
        """Yield a file's rows from a mark on, with the columns of `schema`.

        Raises:
            SchemaError: the file's columns are not those of `schema`.
            BadText: a value cannot be read.
        """

    def line_of(self, path: str, row: int, layout: Layout) -> int | None:
        """Return the line of a file's row (from 0); None if it has no lines."""
        for part in self._parts(path, layout.read, Mark()):
            if not isinstance(part, Good):
                continue
            if row < len(part.block):
                return None if part.lines is None else part.lines()[row]
            row -= len(part.block)
        return None

    def _found(self) -> list[str]:
        if self.planned_files is not None:
            return list(self.planned_files)
        return files_of(self.pattern, folder=self.folder, suffixes=self.suffixes)

    def layout(self, files: list[str]) -> Layout:
        """Return the columns to read; a union's are kept while its files stay.

        A union costs the first megabyte of each file, and a flow asks when it is made and run.
        """
        if self.differing != "union":
            return self.shown_layout(files)
        try:
            state = print_of(files)[1]
        except OSError:  # its reader names the file
            return self.shown_layout(files)
        return _kept_layout(replace(self, planned_files=None), tuple(files), state)

    def shown_layout(self, files: list[str]) -> Layout:
        """Return the columns to read: the first file's, or all files', with types of all."""
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
            whole = self._untold(files)
        of_folders = folder_columns(self.pattern, files, folder=self.folder, wanted=self.hive)
        more = types_of_folders(of_folders)
        twice = [name for name in more.names if name in whole.names]
        if twice and self.hive:
            raise SchemaError(
                f"{self.kind} {first}: column {twice[0]!r} is in the file and in its folder's "
                "name; omit hive=True, which takes the file's"
            )
        more = [field for field in more if field.name not in twice]
        schema = self._chosen(self._said(pa.schema([*whole, *more]), first), first)
        of_path = {field.name for field in more}
        read = [field for field in schema if field.name not in of_path] or list(whole)[:1]
        return Layout(schema, pa.schema(read), of_folders)

    def _untold(self, files: list[str]) -> pa.Schema:
        """Return the columns if no file shows any.

        Raises:
            SchemaError: they are not said either.
        """
        del files
        raise SchemaError(f"{self.describe()}: no file has rows that show types; {self.untold}")

    def _merged(self, whole: pa.Schema, shown: pa.Schema, path: str) -> pa.Schema:
        """Return the first file's columns, with types that a later file shows, or all columns."""
        if self.differing == "union":
            return self._united(whole, shown, path)
        fields = []
        for field in whole:
            at = shown.get_field_index(field.name)
            is_shown = pa.types.is_null(field.type) and at >= 0
            fields.append(shown.field(at) if is_shown else field)
        return pa.schema(fields)

    def _united(self, whole: pa.Schema, shown: pa.Schema, path: str) -> pa.Schema:
        """Return the columns of both, in types that hold the values of both."""
        given = {name for name, _ in self.types}
        wanted = None if self.columns is None else set(self.columns)
        fields = []
        for field in whole:
            at = shown.get_field_index(field.name)
            is_chosen = wanted is None or field.name in wanted
            is_met = at >= 0 and is_chosen and field.name not in given
            fields.append(self._met(field, shown.field(at), path) if is_met else field)
        if self.differing == "union":
            there = set(whole.names)
            fields += [field for field in shown if field.name not in there]
        return pa.schema(fields)

    def _met(self, field: pa.Field, other: pa.Field, path: str) -> pa.Field:
        """Return a column in a type that holds the values of two files."""
        if field.type == other.type or pa.types.is_null(other.type) or not is_read(field):
            return other if pa.types.is_null(field.type) else field
        if pa.types.is_null(field.type) or not is_read(other):
            return other
        common = meeting_type(field.type, other.type)
        if common is None:
            raise SchemaError(
                f"{self.kind} {path}: column {field.name!r} has type {other.type}, and "
                f"{field.type} in the first file, and no type holds both unchanged; say one, "
                f"types={{{field.name!r}: pa.…}}, rewrite a file, or omit the column, columns=[…]"
            )
        return field.with_type(common)

    def _is_settled(self, whole: pa.Schema) -> bool:
        if self.differing == "union":
            return False  # any file may have more
        given = {name for name, _ in self.types}
        return not any(pa.types.is_null(f.type) and f.name not in given for f in whole)

    def _said(self, whole: pa.Schema, path: str) -> pa.Schema:
        given, there = dict(self.types), {*whole.names, *(self.columns or ())}
        for name in given:
            if name not in there:
                raise self._no_column(name, whole, path, option="types=: ")
        return pa.schema([pa.field(f.name, given[f.name]) if f.name in given else f for f in whole])

    def _chosen(self, whole: pa.Schema, path: str) -> pa.Schema:
        fields = []
        for name in self.columns or whole.names:
            places = whole.get_all_field_indices(name)
            if not places:
                raise self._no_column(name, whole, path)
            if len(places) > 1:
                raise SchemaError(
                    f"{self.kind} {path}: column name {name!r} occurs {len(places)} times; "
                    "rename all but one, or choose others with columns=[…]"
                )
            fields.append(whole.field(places[0]))
        return pa.schema(fields)

    def _no_column(
        self, name: str, whole: pa.Schema, path: str, *, option: str = ""
    ) -> SchemaError:
        return SchemaError(
            f"{self.kind} {path}: {option}there is no column {name!r}; {choices(name, whole.names)}"
        )

    def read(
        self, files: list[str], layout: Layout, begin: FilePlace
    ) -> Generator[tuple[str, int, Block], None, None]:
        """Yield (file, rows of earlier files, block) from a place on."""
        settings = self._digest
        while begin.file < len(files):
            path = files[begin.file]
            with self._naming(files, begin.file):
                content = content_of(path)
                left, place = [begin.good, begin.bad], begin._replace(good=0, bad=0)
                for part in self._parts(path, layout.read, Mark(begin.mark)):
                    if isinstance(part, Mark):
                        place = place.at_mark(part.numbers)
                        continue
                    for rows, count, is_bad in self._cut(path, layout, part):
                        skipped = min(left[is_bad], count)
                        left[is_bad] -= skipped
                        place = place.after(skipped, is_bad=is_bad)
                        if skipped < count:
                            at = place.position(self.kind, settings, path, content)
                            yield path, place.before, Block(_after(rows, skipped), at)
                            place = place.after(count - skipped, is_bad=is_bad)
            begin = place.next_file()

    def _cut(
        self, path: str, layout: Layout, part: Good | list[Bad]
    ) -> Iterator[tuple[pa.RecordBatch | BadRows, int, bool]]:
        """Yield (rows, their number, whether they are bad) of a part."""
        if not isinstance(part, Good):
            yield _bad_rows(path, part), len(part), True
            return
        block = layout.completed(part.block, path)
        for start in range(0, len(block), self.batch_rows):
            yield (
                block.slice(start, self.batch_rows),
                min(self.batch_rows, len(block) - start),
                False,
            )

    def _check_names(self, path: str, shown: pa.Schema, expected: pa.Schema) -> None:
        """Check that a file has the others' columns, and no more if all are read."""
        for name in expected.names:
            places = shown.get_all_field_indices(name)
            if not places and self.differing != "error":
                continue
            if not places:
                raise SchemaError(
                    f"{self.kind} {path}: column {name!r} of the first file is missing; "
                    f"there are: {listed(shown.names)}; {SAME_COLUMNS}"
                )
            if len(places) > 1:
                self._chosen(shown, path)
        extra = [name for name in shown.names if expected.get_field_index(name) < 0]
        if extra and self.columns is None and self.differing == "error":
            raise SchemaError(
                f"{self.kind} {path}: column {extra[0]!r} is not in the first file; {SAME_COLUMNS}"
            )

    @contextmanager
    def _naming(self, files: list[str], position: int) -> Iterator[None]:
        """Make an error of Arrow, a reader or the system name the file."""
        which = f"{self.kind} {files[position]} (file {position + 1} of {len(files)} of "
        which += f"{self.pattern})"
        try:
            yield
        except BadText as problem:
            raise IngestError(f"{which}, {text_of(problem)}") from problem
        except (pa.ArrowException, OSError, UnicodeError) as problem:
            raise IngestError(
                f"{which} cannot be read: {text_of(problem)}; "
                f"{way_out(problem, 'write it again, or move it away')}"
            ) from problem


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more


_FEW = 3
"""Files that are named where all are counted."""


SAME_COLUMNS = (
    "all files of an input need the same columns; rewrite it, choose with columns=[…], or say "
    "schema='union' (all columns) or 'first' (those of the first file)"
)


@lru_cache(maxsize=8)
def _kept_layout(given: FileInput, files: tuple[str, ...], state: str) -> Layout:
    del state  # of the files: another one is another layout
    return given.shown_layout(list(files))


_BAD_ROWS = pa.schema(
    [("file", pa.string()), ("line", pa.int64()), ("reason", pa.string()), ("text", pa.string())]
)


def _after(rows: pa.RecordBatch | BadRows, count: int) -> pa.RecordBatch | BadRows:
    """Return rows without the first ones."""
    if not count:
        return rows
    return BadRows(rows.rows.slice(count)) if isinstance(rows, BadRows) else rows.slice(count)


def _bad_rows(path: str, bad: list[Bad]) -> BadRows:
    texts = [each.text[:KEPT_BYTES].decode(errors="replace").rstrip("\r\n") for each in bad]
    columns = [[path] * len(bad), [each.line for each in bad], [each.reason for each in bad], texts]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _BAD_ROWS, strict=True)]
    return BadRows(pa.record_batch(arrays, schema=_BAD_ROWS))


class FileReader:
    """Reads files one after the other, one open at a time.

    Args:
        blocks: (file, rows of earlier files, block) of each block.
        line_of: returns the line of a row of a file.
        first: first row of the file that is read, if its rows are counted from there.

    Attributes:
        place: the file of the last block.
    """

    def __init__(
        self,
        blocks: Generator[tuple[str, int, Block], None, None],
        line_of: Callable[[str, int], int | None],
        first: int = 0,
    ) -> None:
        self._blocks, self._line_of = blocks, line_of
        self._first = first
        self._rows_before = 0  # of earlier files
        self._failure: IngestError | None = None
        self.place = ""

    def poll(self) -> Block | EndOfInput:
        """Return the next block or bad rows, or END_OF_INPUT; a failed reader stays failed."""
        if self._failure is not None:
            raise self._failure
        try:
            self.place, self._rows_before, block = next(self._blocks)
        except StopIteration:
            return END_OF_INPUT
        except IngestError as failure:
            self._failure = failure
            raise
        return block

    @property
    def where(self) -> str:
        """File of the last block, and its row from which rows are counted."""
        return f"{self.place}, from its row {self._first} on" if self._first else self.place

    def line_of(self, row: int) -> int | None:
        """Return the line of a row of the last file; reads that file again."""
        return self._line_of(self.place, row - self._rows_before)

    def close(self) -> None:
        """Close the open file. Idempotent."""
        self._blocks.close()

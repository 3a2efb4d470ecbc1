"""Read CSV; types are guessed from the first megabyte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import pyarrow as pa

from slackwater.ingest.csv_bad import lengths_kept, salvaged
from slackwater.ingest.csv_columns import Place, columns_of, guessed, header_names
from slackwater.ingest.dialect import Dialect
from slackwater.ingest.inputs import Good, Mark, Part
from slackwater.ingest.record_walk import count_lines
from slackwater.ingest.records import (
    BadText,
    Piece,
    TextMark,
    first_record,
    joined,
    pieces,
    records,
)
from slackwater.ingest.salvage import first_bad, in_parts
from slackwater.ingest.text_input import RE_ENCODE, TextInput, marks_of, suffixes_of

__all__ = ["CsvInput"]

_BYTES_OF_COLUMN = 2_048
"""Bytes of a wide file's piece, for each column: each costs a call, however few its rows."""


@dataclass(frozen=True, kw_only=True)
class CsvInput(TextInput):
    """CSV, with a header line unless its dialect says otherwise."""

    dialect: Dialect = field(default_factory=Dialect)

    kind = "csv"
    suffixes = suffixes_of(".csv")

    def _shown(self, path: str) -> pa.Schema | None:
        content = self._opened(path)
        if content is None or not content[0]:
            return None
        names, parts = content
        first = next((part for part in parts if part.data), None)
        said_types = dict(self.types)
        if first is not None:
            try:
                return guessed(first, names, said_types, self.dialect)
            except BadText:
                if self.on_bad == "error":
                    raise
            first = lengths_kept(first, names, self.dialect)
        if first is None or not first.data:
            return pa.schema([(name, said_types.get(name, pa.null())) for name in names])
        return guessed(first, names, said_types, self.dialect)

    def _parts(self, path: str, schema: pa.Schema, mark: Mark) -> Iterator[Part]:
        content = self._opened(path, mark)
        if content is None:
            return
        names, parts = content
        if not names:  # no record can be cut
            yield from (list(piece.bad) for piece in parts)
            return
        shown = pa.schema([(name, pa.null()) for name in names])
        self._check_names(path, shown, schema)
        said = {name for name, _ in self.types}
        at = {name: place for place, name in reversed(list(enumerate(names)))}
        places = [Place(at.get(f.name), f, f.name not in said) for f in schema]

        def read(piece: Piece, explains: bool = True) -> pa.RecordBatch:
            del explains
            return pa.record_batch(columns_of(piece, names, places, self.dialect), schema=schema)

        wanted = self._wanted(parts, self.dialect.form)
        for piece in joined(wanted, len(names) * _BYTES_OF_COLUMN):
            yield from marks_of(piece)
            try:
                block = None if piece.is_blank else read(piece)
            except BadText as problem:
                of_piece = records(piece, self.dialect.form)
                if self.on_bad == "error":
                    raise first_bad(of_piece, problem, read) from None
                for few, bad in in_parts(of_piece, piece.bad):
                    good, block, more = salvaged(few, names, places, self.dialect, read)
                    yield from self._in_order(sorted(bad + more), self._rows(good, block))
            else:
                yield from self._in_order(list(piece.bad), self._rows(piece, block))

    def _rows(self, piece: Piece, block: pa.RecordBatch | None) -> Good | None:
        return None if block is None else Good(block, partial(self._lines, piece))

    def _lines(self, piece: Piece) -> list[int]:
        return [line for line, _ in records(piece, self.dialect.form)]

    def _opened(
        self, path: str, mark: Mark | None = None
    ) -> tuple[list[str], Iterator[Piece]] | None:
        """Return column names, and records from a mark on; None if empty.

        A file of which no record can be cut has no names. Pieces up to that of the header have no
        mark: at one of theirs the header would be a record.
        """
        header, form = self.dialect.header, self.dialect.form
        if mark is not None and mark.numbers:
            content = self._opened(path)
            later = pieces(
                path, form, keeps_bad=self.on_bad != "error", mark=TextMark(*mark.numbers)
            )
            return ([] if content is None else content[0]), later
        parts = pieces(path, form, keeps_bad=self.on_bad != "error")
        early: list[Piece] = []
        for piece in parts:
            if piece.is_blank and not piece.bad:
                continue
            early.append(replace(piece, mark=None))
            if isinstance(header, tuple):
                return list(header), chain(early, parts)
            first = first_record(piece, form)
            if header and piece.bad and (first is None or piece.bad[0].line < first[0]):
                raise piece.bad[0].error()  # no record is read without names
            if first is None:
                continue
            names = self._names(*first)
            if header:
                early[-1:] = _after(piece, first)
            return names, chain(early, parts)
        return ([], iter(early)) if early else None

    def _names(self, line: int, record: bytes) -> list[str]:
        try:
            record.decode()
        except UnicodeDecodeError:
            if self.dialect.header:
                raise BadText(
                    f"the names of the columns are not {self.dialect.encoding.upper()} text",
                    line=line,
                    way_out=RE_ENCODE,
                ) from None
        return header_names(record, self.dialect)


def _after(piece: Piece, header: tuple[int, bytes]) -> list[Piece]:
    """Return a piece without its header, its first record."""
    line, record = header
    end = piece.data.index(record) + len(record)
    lines = None if piece.lines is None else piece.lines[1:]
    rest = Piece(piece.data[end:], line + count_lines(record), lines, piece.bad)
    return [] if rest.is_blank and not rest.bad else [rest]

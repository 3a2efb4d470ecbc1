"""Read CSV with a header line; types are guessed from the first megabyte."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import pyarrow as pa
import pyarrow.csv as arrow_csv

from slackwater.ingest.numerals import Misfit, guessed_type, numbers_of
from slackwater.ingest.records import BadText, Piece, line_of_record, pieces, records
from slackwater.ingest.text_input import RE_ENCODE, SAY_TIME, SAY_TYPE, TextInput
from slackwater.runtime.model.schema import travels

__all__ = ["CsvInput"]


@dataclass(frozen=True, kw_only=True)
class CsvInput(TextInput):
    """CSV with a header line."""

    kind = "csv"
    suffixes = (".csv", ".csv.gz")

    def _shown(self, path: str) -> pa.Schema | None:
        content = _opened(path)
        if content is None:
            return None
        names, parts = content
        first = next(parts, None)
        said_types = dict(self.types)
        if first is None:
            return pa.schema([(name, said_types.get(name, pa.null())) for name in names])
        return _guessed(first, names, said_types)

    def _blocks(self, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        content = _opened(path)
        if content is None:
            return
        names, parts = content
        shown = pa.schema([(name, pa.null()) for name in names])
        self._check_names(path, shown, schema)
        said = {name for name, _ in self.types}
        places = [(names.index(f.name), f, f.name not in said) for f in schema]
        for piece in parts:
            yield pa.record_batch(_columns(piece, names, places), schema=schema)

    def _line_of(self, path: str, row: int) -> int | None:
        content = _opened(path)
        parts = content[1] if content is not None else iter(())
        lines = (line for piece in parts for line, _ in records(piece))
        return next(islice(lines, row, None), None)


def _opened(path: str) -> tuple[list[str], Iterator[Piece]] | None:
    """Return the column names and the records of a file; None if it is empty."""
    parts = (piece for piece in pieces(path, has_quotes=True) if not piece.is_blank)
    first = next(parts, None)
    if first is None:
        return None
    line, header = next(records(first))
    end = first.data.index(header) + len(header)
    rest = Piece(first.data[end:], line + header.count(b"\n"))
    try:
        header.decode()
    except UnicodeDecodeError:
        raise BadText(
            "the names of the columns are not UTF-8 text", line=line, way_out=RE_ENCODE
        ) from None
    names = arrow_csv.read_csv(pa.BufferReader(header)).column_names
    return names, chain([rest] if rest.data and not rest.is_blank else [], parts)


def _guessed(first: Piece, names: list[str], said: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return all columns with their types, given or guessed from first values."""
    types = [said.get(name) for name in names]
    guessed = _parsed(first, names, [at for at, kind in enumerate(types) if kind is None], {})
    numbers = {int(f.name): pa.string() for f in guessed.schema if _is_number(f.type)}
    text = _parsed(first, names, list(numbers), numbers)
    for field in guessed.schema:
        at, kind = int(field.name), field.type
        if at in numbers:
            kind = guessed_type(text[field.name].combine_chunks(), kind)
        elif pa.types.is_timestamp(kind):
            kind = _finest(first, names, at, kind)
        types[at] = pa.string() if pa.types.is_binary(kind) else kind
    return pa.schema(list(zip(names, types, strict=True)))


def _finest(first: Piece, names: list[str], at: int, kind: pa.TimestampType) -> pa.DataType:
    """Return times in nanoseconds if they fit, since later times may be finer."""
    finest = pa.timestamp("ns", kind.tz)
    try:
        _parsed(first, names, [at], {at: finest})
    except BadText:
        return kind
    return finest


def _columns(
    piece: Piece, names: list[str], places: list[tuple[int, pa.Field, bool]]
) -> list[pa.Array]:
    """Return a piece's columns: numbers by our rules, others as Arrow reads them."""
    types = {
        at: pa.string() if _is_ours(field.type, is_guess=is_guess) else field.type
        for at, field, is_guess in places
        if travels(field.type)
    }
    parsed = _parsed(piece, names, list(types), types)
    columns = []
    for at, field, is_guess in places:
        if at not in types:  # no step reads it
            columns.append(pa.nulls(len(parsed), field.type))
            continue
        column = parsed[str(at)].combine_chunks()
        if _is_ours(field.type, is_guess=is_guess):
            numbers = numbers_of(column, field.type, is_guess=is_guess)
            if isinstance(numbers, Misfit):
                raise BadText(
                    f"column {field.name!r}: {column[numbers.row].as_py()!r} {numbers.why}",
                    line=line_of_record(piece, numbers.row),
                    way_out=SAY_TYPE.format(name=field.name),
                )
            column = numbers
        columns.append(column)
    return columns


def _is_ours(kind: pa.DataType, *, is_guess: bool) -> bool:
    """Return whether our rules parse a type; as a guess, booleans are Arrow's."""
    return _is_number(kind) or (pa.types.is_boolean(kind) and not is_guess)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _parsed(
    piece: Piece, names: list[str], chosen: Sequence[int], types: dict[int, pa.DataType]
) -> pa.Table:
    """Return chosen columns, each named by its place: two may have one name.

    Raises:
        BadText: a record has too many or too few values, or a value is not of its type.
    """
    if not chosen:
        return pa.table({})
    wrong: list[arrow_csv.InvalidRow] = []

    def refuse(row: arrow_csv.InvalidRow) -> str:
        wrong.append(row)
        return "error"

    try:
        return arrow_csv.read_csv(
            pa.BufferReader(piece.data),
            read_options=arrow_csv.ReadOptions(
                column_names=[str(at) for at in range(len(names))],
                use_threads=False,
                block_size=len(piece.data) + 1,
            ),
            parse_options=arrow_csv.ParseOptions(
                newlines_in_values=True, invalid_row_handler=refuse
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=[str(at) for at in chosen],
                column_types={str(at): kind for at, kind in types.items()},
                true_values=["true", "True", "TRUE"],
                false_values=["false", "False", "FALSE"],
            ),
        )
    except pa.ArrowInvalid as problem:
        if wrong:
            raise BadText(
                f"{wrong[0].actual_columns} value(s), and the header names "
                f"{wrong[0].expected_columns}",
                line=line_of_record(piece, wrong[0].number - 1),
                way_out="correct the record; a value with a comma needs quotes around it",
            ) from None
        raise _misread(problem, piece, names) from None


_AT = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to ([^:]*): (.*)", re.S)


def _misread(problem: pa.ArrowInvalid, piece: Piece, names: list[str]) -> BadText:
    match = _AT.fullmatch(str(problem))
    if match is None:
        return BadText(str(problem), line=piece.line, way_out="correct it there")
    name, line = names[int(match[1])], line_of_record(piece, int(match[2]) - 1)
    if "invalid UTF8" in match[4]:
        fact, way_out = f"column {name!r} is not UTF-8 text", RE_ENCODE
    else:
        fact = f"column {name!r} is {match[3]} so far, and here: {match[4]}"
        way_out = SAY_TYPE.format(name=name)
        if match[3].startswith("timestamp"):
            way_out = SAY_TIME.format(name=name)
    return BadText(fact, line=line, way_out=way_out)

"""Parse columns of CSV records: numbers and durations by our rules, others by Arrow's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv as arrow_csv

from slackwater.ingest.dialect import Dialect
from slackwater.ingest.numerals import Misfit, guessed_type, numbers_of
from slackwater.ingest.records import BadText, Piece, line_of_record
from slackwater.ingest.text_input import RE_ENCODE, SAY_TIME, SAY_TYPE
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.schema import travels
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import shown

__all__ = ["Place", "columns_of", "guessed", "header_names", "parsed", "wrong_lengths"]

_TRUE = ["true", "True", "TRUE"]
_FALSE = ["false", "False", "FALSE"]


class Place(NamedTuple):
    """Where a column of the input is in a file.

    Attributes:
        at: its place in each record; None if the file lacks it.
        field: its name and type.
        is_guess: whether the type is a guess, not given by the user.
    """

    at: int | None
    field: pa.Field
    is_guess: bool


def header_names(record: bytes, dialect: Dialect) -> list[str]:
    """Return the names of a header, or f0, f1, … if the record is none."""
    table = arrow_csv.read_csv(
        pa.BufferReader(record + b"\n"),  # it may be all of a file
        read_options=arrow_csv.ReadOptions(
            autogenerate_column_names=dialect.header is False, use_threads=False
        ),
        parse_options=_parse_options(dialect, None),
    )
    names: list[str] = table.column_names
    return names


def guessed(
    first: Piece, names: list[str], said: Mapping[str, pa.DataType], dialect: Dialect
) -> pa.Schema:
    """Return all columns with their types, given or guessed from first values."""
    types = [said.get(name) for name in names]
    unsaid = [at for at, kind in enumerate(types) if kind is None]
    table = parsed(first, names, unsaid, {}, dialect)
    numbers = {int(f.name): pa.string() for f in table.schema if _is_number(f.type)}
    times = {int(f.name): f.type for f in table.schema if pa.types.is_timestamp(f.type)}
    finest = {at: pa.timestamp("ns", kind.tz) for at, kind in times.items()}
    try:
        text = parsed(first, names, [*numbers, *times], {**numbers, **finest}, dialect)
    except BadText:
        text = parsed(first, names, list(numbers), numbers, dialect)
        finest = {at: _finest(first, names, at, kind, dialect) for at, kind in times.items()}
    for field in table.schema:
        at, kind = int(field.name), finest.get(int(field.name), field.type)
        if at in numbers:
            written = dotted(text[field.name].combine_chunks(), kind, dialect)
            kind = guessed_type(written, kind, nulls=dialect.null_texts)
        types[at] = pa.string() if pa.types.is_binary(kind) else kind
    return pa.schema(list(zip(names, types, strict=True)))


def _finest(
    first: Piece, names: list[str], at: int, kind: pa.TimestampType, dialect: Dialect
) -> pa.DataType:
    """Return times in nanoseconds if they fit, since later times may be finer."""
    finest = pa.timestamp("ns", kind.tz)
    try:
        parsed(first, names, [at], {at: finest}, dialect)
    except BadText:
        return kind
    return finest


def columns_of(
    piece: Piece, names: list[str], places: Iterable[Place], dialect: Dialect
) -> list[pa.Array]:
    """Return a piece's columns, null where the file lacks one.

    Raises:
        BadText: as `parsed`.
    """
    places = list(places)
    try:
        return _read(piece, names, places, dialect, is_ours)
    except BadText as problem:
        if not any(map(_may_be_in_seconds, places)):
            raise
        by_arrow = problem
    try:
        return _read(
            piece, names, places, dialect, lambda place: is_ours(place) or _may_be_in_seconds(place)
        )
    except BadText:
        raise by_arrow from None


def _may_be_in_seconds(place: Place) -> bool:
    """Return whether times may have offsets with seconds, which Arrow does not read."""
    kind = place.field.type
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def _read(
    piece: Piece,
    names: list[str],
    places: list[Place],
    dialect: Dialect,
    is_read_as_text: Callable[[Place], bool],
) -> list[pa.Array]:
    types = {
        place.at: pa.string() if is_read_as_text(place) else place.field.type
        for place in places
        if place.at is not None and travels(place.field.type)
    }
    chosen = list(types) or [0]  # for the number of records
    table = parsed(piece, names, chosen, types or {0: pa.binary()}, dialect)
    columns = []
    for place in places:
        if place.at not in types:  # no step reads it, or the file lacks it
            columns.append(pa.nulls(len(table), place.field.type))
            continue
        column = table[str(place.at)].combine_chunks()
        if is_read_as_text(place):
            numbers = numbers_in(column, place, dialect)
            if isinstance(numbers, Misfit):
                raise BadText(
                    f"column {place.field.name!r}: {shown(column[numbers.row])} {numbers.why}",
                    line=line_of_record(piece, numbers.row, dialect.form),
                    way_out=SAY_TYPE.format(name=place.field.name),
                )
            column = numbers
        columns.append(column)
    return columns


def numbers_in(text: pa.StringArray, place: Place, dialect: Dialect) -> pa.Array | Misfit:
    """Return text as numbers of a column, or its first misfit."""
    kind = place.field.type
    return numbers_of(
        dotted(text, kind, dialect), kind, is_guess=place.is_guess, nulls=dialect.null_texts
    )


def dotted(text: pa.StringArray, kind: pa.DataType, dialect: Dialect) -> pa.StringArray:
    """Return text with decimal points; one that is there already makes no number."""
    if dialect.decimal == "." or not (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return text
    functions = arrow_functions()
    other = functions.replace_substring(text, ".", "?")
    return functions.replace_substring(other, dialect.decimal, ".")


def is_ours(place: Place) -> bool:
    """Return whether our rules parse a column; as a guess, booleans are Arrow's."""
    kind = place.field.type
    is_said = pa.types.is_boolean(kind) and not place.is_guess
    return is_said or _is_number(kind) or pa.types.is_duration(kind)


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def parsed(
    piece: Piece,
    names: list[str],
    chosen: Sequence[int],
    types: Mapping[int, pa.DataType],
    dialect: Dialect,
) -> pa.Table:
    """Return chosen columns, each named by its place: two may have one name.

    Raises:
        BadText: a record has too many or too few values, or a value is not of its type.
    """
    if not chosen:
        return pa.table({})
    try:
        return read(piece.data, len(names), chosen, types, dialect, None)
    except pa.ArrowInvalid as problem:
        wrong, _ = wrong_lengths(piece.data, len(names), dialect)
        if wrong:
            raise BadText(
                wrong[min(wrong)],
                line=line_of_record(piece, min(wrong), dialect.form),
                way_out=_wrong_length_way_out(names, dialect.sep),
            ) from None
        raise _misread(problem, piece, names, dialect) from None


def wrong_lengths(data: bytes, width: int, dialect: Dialect) -> tuple[dict[int, str], int]:
    """Return {place of a record of another length: reason}, and the number of others."""
    wrong: dict[int, str] = {}

    def skip(row: arrow_csv.InvalidRow) -> str:
        count = count_of(row.actual_columns, "value")
        wrong[row.number - 1] = f"{count}, and the header names {row.expected_columns}"
        return "skip"

    text = data.decode(errors="replace").encode()  # Arrow calls `skip` with text only
    return wrong, len(read(text, width, [0], {0: pa.binary()}, dialect, skip))


def _wrong_length_way_out(names: list[str], sep: str) -> str:
    others = [other for other in ";\t|," if other != sep and other in names[0]]
    if len(names) == 1 and others:
        return f"its header has {others[0]!r}, so it may need sep={others[0]!r}"
    return f"correct the record; a value with {sep!r} needs quotes around it"


def read(
    data: bytes,
    width: int,
    chosen: Sequence[int],
    types: Mapping[int, pa.DataType],
    dialect: Dialect,
    on_length: object,
) -> pa.Table:
    """Return what Arrow reads; `on_length` is called with each record of another length.

    None if such a record is an error.
    """
    nulls = {} if dialect.nulls is None else {"null_values": list(dialect.nulls)}
    return arrow_csv.read_csv(
        pa.BufferReader(data),
        read_options=arrow_csv.ReadOptions(
            column_names=[str(at) for at in range(width)],
            use_threads=False,
            block_size=len(data) + 1,
        ),
        parse_options=_parse_options(dialect, on_length),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=[str(at) for at in chosen],
            column_types={str(at): kind for at, kind in types.items()},
            true_values=_TRUE,
            false_values=_FALSE,
            strings_can_be_null=dialect.nulls is not None,
            decimal_point=dialect.decimal,
            **nulls,
        ),
    )


def _parse_options(dialect: Dialect, on_length: object) -> arrow_csv.ParseOptions:
    return arrow_csv.ParseOptions(
        delimiter=dialect.sep,
        quote_char=dialect.quote or False,
        newlines_in_values=True,
        invalid_row_handler=on_length,
    )


_AT = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to ([^:]*): (.*)", re.S)


def _misread(problem: pa.ArrowInvalid, piece: Piece, names: list[str], dialect: Dialect) -> BadText:
    match = _AT.fullmatch(str(problem))
    if match is None:
        return BadText(str(problem), line=piece.line, way_out="correct it there")
    name = names[int(match[1])]
    line = line_of_record(piece, int(match[2]) - 1, dialect.form)
    if "invalid UTF8" in match[4]:
        fact, way_out = not_text(name, dialect.encoding), RE_ENCODE
    else:
        fact = f"column {name!r} is {match[3]} so far, and here: {match[4]}"
        way_out = SAY_TYPE.format(name=name)
        if match[3].startswith("timestamp"):
            way_out = SAY_TIME.format(name=name)
    return BadText(fact, line=line, way_out=way_out)


def not_text(name: str, encoding: str) -> str:
    """Return the reason why a value that is not text of its encoding is bad."""
    return f"column {name!r} is not {encoding.upper()} text"

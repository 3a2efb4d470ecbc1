"""Read JSON lines; types are guessed from the first megabyte."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.ingest.dialect import Form
from slackwater.ingest.inputs import Good, Mark, Part
from slackwater.ingest.json_door import is_blank, read_objects
from slackwater.ingest.json_values import is_long, read_back, written_type
from slackwater.ingest.jsonl_bad import (
    DECODER,
    WrittenFloat,
    as_written,
    no_object,
    objects_kept,
    reasons_of,
)
from slackwater.ingest.numerals import Misfit, inexact_as, is_same
from slackwater.ingest.records import BadText, Piece, TextMark, piece_of, pieces
from slackwater.ingest.salvage import by_halves, first_bad, in_parts
from slackwater.ingest.text_input import RE_ENCODE, SAY_TIME, TextInput, marks_of, suffixes_of
from slackwater.ingest.times import guessed_time, is_time
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model.schema import GUESSED, is_nested, is_read
from slackwater.runtime.shown import shown

__all__ = ["JsonLinesInput"]

_EXACT = 1 << 53
"""Whole numbers up to here are exact as float64."""
_BEYOND = pa.decimal256(76, 0)
"""Type of whole numbers that no type of ours holds: a step that reads them is refused."""


@dataclass(frozen=True, kw_only=True)
class JsonLinesInput(TextInput):
    """Files with one JSON object a line. A missing field is null."""

    encoding: str = "utf-8"

    kind = "jsonl"
    suffixes = suffixes_of(".jsonl", ".ndjson", ".json")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, kind in self.types:
            try:
                read_objects(b"{}", _written(pa.schema([(name, kind)])), "ignore")
            except pa.ArrowNotImplementedError:
                raise SettingError(
                    f"jsonl: types: {name!r} has type {kind}, which is not read from JSON; "
                    f"{_NOT_OF_JSON}"
                ) from None

    def _shown(self, path: str) -> pa.Schema | None:
        first = next((piece for piece in self._pieces(path) if piece.data), None)
        if first is None:
            return None
        said_types, is_strict = dict(self.types), self.on_bad != "error"

        def read(piece: Piece, explains: bool) -> pa.RecordBatch:
            schema = _guess(piece, said_types, path, is_strict=False)
            return self._block(piece, schema, explains=explains)

        try:
            _refuse_bytes(first, self.columns, self.encoding)
            return _guess(first, said_types, path, is_strict=is_strict)
        except BadText as problem:
            if not is_strict:
                raise first_bad(list(_lines(first)), problem, read) from None
        first = _readable(first, said_types)
        return _guess(first, said_types, path, is_strict=False) if first.data else None

    def _said(self, whole: pa.Schema, path: str) -> pa.Schema:
        there = set(whole.names)
        later = [pa.field(name, kind) for name, kind in self.types if name not in there]
        return super()._said(pa.schema([*whole, *later]), path)

    def _parts(self, path: str, schema: pa.Schema, mark: Mark) -> Iterator[Part]:
        def read(piece: Piece, explains: bool) -> pa.RecordBatch:
            return self._block(piece, schema, explains=explains)

        wanted = self._wanted(self._pieces(path, mark), Form(encoding=self.encoding))
        for piece in wanted:
            yield from marks_of(piece)
            try:
                block = read(piece, self.on_bad == "error") if piece.data else None
            except BadText as problem:
                of_piece = list(_lines(piece))
                if self.on_bad == "error":
                    raise first_bad(of_piece, problem, read) from None
                for few, bad in in_parts(of_piece, piece.bad):
                    good, block, more = by_halves(few, self._reasons(few, schema), read)
                    yield from self._in_order(sorted(bad + more), _rows(good, block))
            else:
                yield from self._in_order(list(piece.bad), _rows(piece, block))

    def _pieces(self, path: str, mark: Mark | None = None) -> Iterator[Piece]:
        form, begin = (
            Form(encoding=self.encoding),
            TextMark(*(() if mark is None else mark.numbers)),
        )
        is_first = not begin.read
        for piece in pieces(path, form, keeps_bad=self.on_bad != "error", mark=begin):
            if is_first and self._is_array(piece):
                raise BadText(
                    "the file is one JSON array, and an object a line is read",
                    line=piece.line,
                    way_out="write it so, jq -c '.[]' it.json > it.jsonl, or load it yourself: "
                    "sw.table(pa.Table.from_pylist(json.load(file)))",
                )
            has_none = is_blank(piece.data)
            is_first = is_first and has_none
            if not has_none or piece.bad:
                yield replace(piece, data=b"") if has_none else piece

    def _is_array(self, piece: Piece) -> bool:
        """Return whether a file is one JSON array; a record may be one, too."""
        begin = piece.data.lstrip()
        if begin[:1] != b"[" or self.on_bad == "error":
            return begin[:1] == b"["
        try:
            json.loads(begin.splitlines()[0])
        except RecursionError:
            return False
        except ValueError:
            return True
        return False

    def _block(self, piece: Piece, schema: pa.Schema, *, explains: bool) -> pa.RecordBatch:
        """Return the rows of a piece.

        Raises:
            BadText: a record cannot be read; if `explains`, the first one, by its line.
        """
        known = pa.schema([f for f in schema if is_read(f)])
        _refuse_bytes(piece, known.names, self.encoding)
        table = self._parsed(piece, _written(known), schema, explains=explains)
        for name in self._guessed_floats(schema):
            row = _first_inexact(piece, name, table.column(name))
            if row is not None:
                raise BadText(
                    f"column {name!r}: {row[1]} {inexact_as(table[name].type)}",
                    line=row[0],
                    way_out=f"say types={{{name!r}: 'float64'}} if that is right",
                )
        arrays = [
            _values(piece, table, f) if is_read(f) else pa.nulls(len(table), f.type) for f in schema
        ]
        return pa.record_batch(arrays, schema=schema)

    def _guessed_floats(self, schema: pa.Schema) -> list[str]:
        said = {name for name, _ in self.types}
        return [f.name for f in schema if pa.types.is_floating(f.type) and f.name not in said]

    def _reasons(self, of_piece: Sequence[tuple[int, bytes]], schema: pa.Schema) -> dict[int, str]:
        """Return {place of a record: why it is bad}, judged each alone."""
        known = pa.schema([f for f in schema if is_read(f)])
        exact = set(self._guessed_floats(schema))

        def not_text(line: int, text: bytes) -> str | None:
            try:
                _refuse_bytes(Piece(text, line), known.names, self.encoding)
            except BadText as problem:
                return problem.fact
            return None

        return reasons_of(of_piece, known, exact, not_text)

    def _parsed(
        self, piece: Piece, known: pa.Schema, schema: pa.Schema, *, explains: bool
    ) -> pa.Table:
        """Return the columns of a piece that steps may read."""
        is_open = self.columns is not None or self.differing == "first"
        if is_open or len(known) == len(schema):
            behavior = "ignore" if is_open else "error"
            table = _read(piece, known, behavior, explains=explains)
        else:  # columns of other types may hold anything, but no new ones may appear
            try:
                table = read_objects(piece.data, known, "infer")
            except pa.ArrowInvalid:
                table = _read(piece, known, "ignore", explains=explains)
                names = _names_of(piece)
            else:
                names = table.column_names
            more = sorted(set(names) - set(schema.names))
            if more:
                raise BadText(
                    f"field {more[0]!r} is new", line=_line_with(piece, more[0]), way_out=_NEW_FIELD
                )
        return table


_NOT_OF_JSON = (
    "an object is a pa.struct([…]); pairs, as jsonl_sink writes a map, are not read: write "
    "parquet, or choose others, columns=[…]"
)


def _values(piece: Piece, table: pa.Table, field: pa.Field) -> pa.Array:
    """Return a column of a piece in its own type."""
    column, kind = table.column(field.name).combine_chunks(), field.type
    if is_long(kind):
        every = (fields.get(field.name) for _, fields in _objects(piece))
        column = pa.array(
            [None if value is None else as_written(value) for value in every], pa.string()
        )
    values = read_back(column, kind)
    if isinstance(values, Misfit):
        line, text = next(islice(_lines(piece), values.row, None))
        said = shown(column[values.row])
        if pa.types.is_decimal(kind):
            said = shown(as_written(next(_objects(Piece(text, line)))[1][field.name]))
        way_out = SAY_TIME if is_time(kind) else _SAY_JSON_TYPE
        raise BadText(
            f"column {field.name!r}: {said} {values.why}",
            line=line,
            way_out=way_out.format(name=field.name),
        )
    return values


_SAY_JSON_TYPE = (
    "say a type that all have, types={{{name!r}: …}} ('float64' rounds whole numbers); or leave "
    "such records out, on_bad='skip'"
)
"""The hint for a value that is not of the type so far: text and numbers have none in common."""


def _readable(piece: Piece, said: Mapping[str, pa.DataType]) -> Piece:
    """Return the records that can be read, each judged alone."""
    types = pa.schema(list(said.items()))
    kept, known = objects_kept(list(_lines(piece)), types), _written(types)
    kept = _of_most(kept, said)
    try:
        read_objects(kept.data, known, "infer")
    except pa.ArrowInvalid as problem:
        if _CHANGED.search(str(problem)) is None:  # a record that Python reads, and Arrow does not
            return piece_of(
                [record for record in _lines(kept) if _is_read_by_arrow(record[1], known)]
            )
    return kept


def _of_most(piece: Piece, said: Collection[str]) -> Piece:
    """Return the records whose values are of their column's most frequent kind."""
    records = list(_lines(piece))
    objects = [fields for _, fields in _objects(piece)]
    kinds: dict[str, Counter[type]] = {}
    for fields in objects:
        for name in fields.keys() - said:
            kinds.setdefault(name, Counter())[_json_kind(fields[name])] += 1
    for of_column in kinds.values():
        of_column.pop(_NULL, None)
    most = {name: of.most_common(1)[0][0] for name, of in kinds.items() if len(of) > 1}
    return piece_of(
        [
            record
            for record, fields in zip(records, objects, strict=True)
            if all(_json_kind(fields.get(name)) in (kind, _NULL) for name, kind in most.items())
        ]
    )


_NULL = type(None)


def _json_kind(value: Any) -> type:
    """Return the kind of a value of JSON, whose numbers are of one kind."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float if is_number else type(value)


def _is_read_by_arrow(text: bytes, known: pa.Schema) -> bool:
    try:
        read_objects(text, known, "infer")
    except pa.ArrowInvalid:
        return False
    return True


_NEW_FIELD = (
    "leave it out: columns=[…] of the others; or read it: say its type, types={'field': 'int64'}"
)


def _guess(
    first: Piece, said: Mapping[str, pa.DataType], path: str, *, is_strict: bool
) -> pa.Schema:
    """Return the types of all fields that the piece shows.

    Args:
        first: first records of the file.
        said: types that are given.
        path: the file.
        is_strict: whether values of several types are bad; else their column is not read.

    Raises:
        BadText: a record cannot be read.
    """
    table, mixed = _inferred(first, said, path, is_strict=is_strict)
    times = _guess_times(first, table.schema, said)
    fields = {
        name: pa.field(name, pa.null(), metadata={GUESSED: why.encode()})
        for name, why in mixed.items()
    }
    for field in table.schema:
        kind = field.type
        if field.name not in said and pa.types.is_floating(kind):
            kind = _exact_type(first, field.name, table.column(field.name))
        guessed = pa.field(field.name, times.get(field.name, kind))
        is_guess = field.name not in said
        if is_guess and (is_nested(kind) or pa.types.is_decimal(kind)):
            why = (
                f"has type {kind}, guessed from the first rows, and later ones may differ; say "
                f"it, types={{{field.name!r}: pa.…}}, or leave it out, columns=[…]"
            )
            guessed = guessed.with_metadata({GUESSED: why.encode()})
        fields[field.name] = guessed
    names = _names_of(first) if said or mixed else table.column_names
    return pa.schema([fields[name] for name in names])


def _inferred(
    first: Piece, said: Mapping[str, pa.DataType], path: str, *, is_strict: bool
) -> tuple[pa.Table, dict[str, str]]:
    """Return columns of one type, and {other column: why it is not read}."""
    known, mixed = _written(pa.schema(list(said.items()))), dict[str, str]()
    while True:
        left = first if not mixed else _without(first, mixed)
        try:
            return read_objects(left.data, known, "infer"), mixed
        except pa.ArrowInvalid as problem:
            match = _CHANGED.search(str(problem))
            name = "" if match is None else match[1].split("/")[0]
            if match is None or name in said or name in mixed:
                return _read(first, known, "infer"), mixed  # whose error says more
            if not mixed:
                _refuse_no_objects(first)
            of_types = _of_several(problem, left)
            if is_strict:
                raise of_types from None
            mixed[name] = (
                f"has values of several types: jsonl {path}, line {of_types.line}: "
                f"{match[2]} so far, and {match[3]} here; say one and leave the others out, "
                f"types={{{name!r}: {_SAID.get(match[2], 'pa.…')}}}, on_bad='skip'; or omit the "
                "column, columns=[…]"
            )


_SAID = {"number": "'float64'", "string": "'string'", "boolean": "'bool'"}
"""{a kind of Arrow's reader: the type to say}"""


def _refuse_no_objects(piece: Piece) -> None:
    """Check that each line is an object: of one cut off, Arrow sees another type."""
    of_piece = list(_lines(piece))
    reasons = reasons_of(of_piece, pa.schema([]), (), lambda _line, _text: None)
    for at, why in reasons.items():
        raise BadText(why, line=of_piece[at][0], way_out=_ONE_OBJECT)


def _without(piece: Piece, names: Collection[str]) -> Piece:
    kept = [
        (line, {name: value for name, value in fields.items() if name not in names})
        for line, fields in _objects(piece)
    ]
    return piece_of([(line, json.dumps(fields).encode()) for line, fields in kept])


def _guess_times(first: Piece, guessed: pa.Schema, said: Collection[str]) -> dict[str, pa.DataType]:
    """Return {column: type} of the columns of text, some of which are times."""
    text = [f.name for f in guessed if f.name not in said and _is_text(f.type)]
    if not text:
        return {}
    table = read_objects(first.data, pa.schema([(name, pa.string()) for name in text]), "ignore")
    return {name: guessed_time(table.column(name).combine_chunks()) or pa.string() for name in text}


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_timestamp(kind))


def _written(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, written_type(field.type)) for field in schema])


def _exact_type(first: Piece, name: str, column: pa.ChunkedArray) -> pa.DataType:
    """Return the type of numbers: float64 if it changes none and not all are whole."""
    if _first_inexact(first, name, column) is None:
        if not (np.abs(column.to_numpy()) >= _EXACT).any():
            return column.type
        numbers = (fields.get(name) for _, fields in _objects(first))
        if any(isinstance(number, float) for number in numbers):
            return column.type
    try:
        read_objects(first.data, pa.schema([(name, pa.uint64())]), "ignore")
    except pa.ArrowInvalid:
        return _BEYOND
    return pa.uint64()


def _first_inexact(piece: Piece, name: str, column: pa.ChunkedArray) -> tuple[int, str] | None:
    """Return (line, number) of the first number that a float would change."""
    values = np.abs(column.to_numpy())
    may_vanish = (values == 0).any() and any(sign in piece.data for sign in _TINY)
    if not (may_vanish or (values >= _EXACT).any()):
        return None
    for line, fields in _objects(piece):
        number = fields.get(name)
        if isinstance(number, int) and not isinstance(number, bool):
            if abs(number) > _MOST_FLOAT or number != float(number):
                return line, str(number)
        elif isinstance(number, WrittenFloat) and not is_same(number.written, number):
            return line, number.written
    return None


_MOST_FLOAT = int(np.finfo(np.float64).max)
_TINY = (b"e-", b"E-", b"0" * 300)
"""Text of a number that is not zero although its float is."""


def _read(piece: Piece, known: pa.Schema, behavior: str, *, explains: bool = True) -> pa.Table:
    """Parse a piece.

    Raises:
        BadText: a value cannot be read; if `explains`, names its line, and the column if known.
    """
    try:
        return read_objects(piece.data, known, behavior)
    except pa.ArrowInvalid as problem:
        reason = problem
    if not explains:
        raise BadText(_reason_of(reason), line=None, way_out="correct it")
    for line, text in _lines(piece):
        try:
            read_objects(text, known, behavior)
        except pa.ArrowInvalid as problem:
            raise _misread(problem, line, text, known) from None
    raise _of_several(reason, piece) from None


_ONE_OBJECT = "correct it: each line is one JSON object (jq -c . writes such lines)"


def _misread(problem: pa.ArrowInvalid, line: int, text: bytes, known: pa.Schema) -> BadText:
    if twice := _TWICE.search(str(problem)):
        return BadText(f"field {twice[1]!r} is there twice", line=line, way_out="keep one of them")
    more = set(_names_of(Piece(text, line))) - set(known.names)
    if "unexpected field" in str(problem) and more:
        return BadText(f"field {min(more)!r} is new", line=line, way_out=_NEW_FIELD)
    if why := no_object(text):
        return BadText(why, line=line, way_out=_ONE_OBJECT)
    try:
        read_objects(text, pa.schema([]), "ignore")
    except pa.ArrowInvalid as of_line:  # no column's fault
        return BadText(_reason_of(of_line), line=line, way_out=_ONE_OBJECT)
    for field in known:
        try:
            read_objects(text, pa.schema([field]), "ignore")
        except pa.ArrowInvalid as of_field:
            if field.name not in _names_of(Piece(text, line)):
                continue
            fact = f" is {field.type} so far, and here: {_reason_of(of_field)}"
            if pa.types.is_decimal(field.type):  # which is read wider than it is said
                value = next(_objects(Piece(text, line)))[1][field.name]
                fact = (
                    f": {shown(as_written(value))} is no decimal of {field.type.precision} digits"
                )
            return BadText(
                f"column {field.name!r}{fact}",
                line=line,
                way_out=_SAY_JSON_TYPE.format(name=field.name),
            )
    return BadText(_reason_of(problem), line=line, way_out=_ONE_OBJECT)


def _reason_of(problem: pa.ArrowInvalid) -> str:
    return re.sub(r" in row \d+$", "", str(problem)).removeprefix("JSON parse error: ")


_CHANGED = re.compile(r"Column\(/?(.*)\) changed from (\w+) to (\w+) in row (\d+)")


_TWICE = re.compile(r"Column\(/?(.*)\) was specified twice")


def _of_several(problem: pa.ArrowInvalid, piece: Piece) -> BadText:
    """Return the error of lines that are right alone, but differ in type."""
    match = _CHANGED.search(str(problem))
    if match is None:
        way_out = "correct the lines from there on"
        return BadText(_reason_of(problem), line=piece.line, way_out=way_out)
    lines = [line for line, _ in _lines(piece)]
    row = min(int(match[4]), len(lines) - 1)
    return BadText(
        f"column {match[1]!r} is {match[2]} so far, and {match[3]} here",
        line=lines[row],
        way_out="write it in one type, or choose others with columns=[…] and say all their types",
    )


def _lines(piece: Piece) -> Iterator[tuple[int, bytes]]:
    numbers = enumerate(piece.data.splitlines(), piece.line)
    if piece.lines is not None:  # of a piece of which some lines were left out
        yield from zip(
            piece.lines, (text for _, text in numbers if not is_blank(text)), strict=True
        )
        return
    for number, text in numbers:
        if not is_blank(text):
            yield number, text


def _rows(piece: Piece, block: pa.RecordBatch | None) -> Good | None:
    return None if block is None else Good(block, partial(_numbers, piece))


def _numbers(piece: Piece) -> list[int]:
    return [line for line, _ in _lines(piece)]


def _objects(piece: Piece) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in _lines(piece):
        written, at = text.decode(errors="replace").strip(), 0
        while at < len(written):
            try:
                fields, at = DECODER.raw_decode(written, at)
            except (ValueError, RecursionError):
                break
            if isinstance(fields, dict):
                yield line, fields
            at += len(written[at:]) - len(written[at:].lstrip(" \t,"))


def _names_of(piece: Piece) -> list[str]:
    return list(dict.fromkeys(name for _, fields in _objects(piece) for name in fields))


def _line_with(piece: Piece, name: str) -> int:
    return next(line for line, fields in _objects(piece) if name in fields)


def _is_utf8(piece: Piece) -> bool:
    try:
        piece.data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _refuse_bytes(piece: Piece, names: Collection[str] | None, encoding: str) -> None:
    """Check that columns are UTF-8 text; `names` is None if all are read."""
    if _is_utf8(piece):
        return
    for line, text in _lines(piece):
        if _is_utf8(Piece(text, line)):
            continue
        fields = next(_objects(Piece(text.decode("latin-1").encode(), line)), (line, {}))[1]
        bad = [name for name, value in fields.items() if not _is_latin_of_utf8(name, value)]
        read = [name for name in bad if names is None or name in names]
        if read or not bad:
            which = f"column {read[0]!r}" if read else "the line"
            raise BadText(f"{which} is not {encoding.upper()} text", line=line, way_out=RE_ENCODE)


def _is_latin_of_utf8(name: str, value: Any) -> bool:
    text = json.dumps([name, value], ensure_ascii=False)
    return _is_utf8(Piece(text.encode("latin-1", errors="ignore"), 0))

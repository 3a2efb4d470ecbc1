"""Find lines of JSON that cannot be read, each by itself.

Arrow's reader costs more a line than Python's, so lines are judged here first. Both take the same
text, NaN too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.ingest.json_door import NO_OBJECT, TOO_DEEP, is_too_deep
from slackwater.ingest.json_values import written_type
from slackwater.ingest.misfits import cast_misfits
from slackwater.ingest.numerals import inexact_as, is_same
from slackwater.ingest.records import Piece, piece_of
from slackwater.ingest.times import is_time
from slackwater.runtime.shown import MOST_SHOWN, cut, shown

__all__ = ["DECODER", "WrittenFloat", "as_written", "no_object", "objects_kept", "reasons_of"]


class WrittenFloat(float):
    """A float that keeps its text."""

    def __new__(cls, written: str) -> WrittenFloat:
        """Return the float that a text is."""
        number = super().__new__(cls, written)
        number.written = written
        return number

    written: str


def as_written(value: Any) -> str:
    """Return a text, or a number as its file has it."""
    return value.written if isinstance(value, WrittenFloat) else str(value)


class _Unclear(Exception):
    """Python cannot judge a line; Arrow may."""


def reasons_of(
    of_piece: Sequence[tuple[int, bytes]],
    known: pa.Schema,
    exact: Collection[str],
    not_text: Callable[[int, bytes], str | None],
) -> dict[int, str]:
    """Return {place of a line: why it is bad}, judged without its neighbours.

    Args:
        of_piece: (line, bytes) of each record.
        known: columns that are read, with their types.
        exact: columns of guessed floats, which change no number.
        not_text: returns why a line that is not UTF-8 is bad; None if no column of these is.
    """
    reasons: dict[int, str] = {}
    is_cast = {f.name: is_time(f.type) or pa.types.is_decimal(f.type) for f in known}
    cast = {name: dict[int, str]() for name in known.names if is_cast[name]}
    for at, (line, text) in enumerate(of_piece):
        why: str | None = None
        try:
            written = text.decode()
        except UnicodeDecodeError:
            why, written = not_text(line, text), text.decode(errors="replace")
        try:
            fields = _object(written)
        except _Unclear:
            continue
        if why is None:
            why = fields if isinstance(fields, str) else _misfit(fields, known, exact)
        if why is not None:
            reasons[at] = why
            continue
        for name, of_column in cast.items():
            value = fields.get(name) if isinstance(fields, Mapping) else None
            if value is not None:
                of_column[at] = as_written(value)
    for name, of_column in cast.items():
        for at, why in _not_cast(of_column, known.field(name)).items():
            reasons.setdefault(at, why)
    return reasons


def objects_kept(of_piece: list[tuple[int, bytes]], said: pa.Schema) -> Piece:
    """Return the lines that are one JSON object of UTF-8 text.

    Args:
        of_piece: (line, bytes) of each record.
        said: columns whose types are given, and which values must have.
    """
    reasons = reasons_of(of_piece, said, (), lambda _line, _text: "no text")
    sound = [each for at, each in enumerate(of_piece) if at not in reasons]
    return piece_of([(line, text) for line, text in sound if not _is_unclear(text)])


def _is_unclear(text: bytes) -> bool:
    try:
        _object(text.decode(errors="replace"))
    except _Unclear:
        return True
    return False


def no_object(text: bytes) -> str | None:
    """Return why a line is not one object; None if it is one or unclear."""
    try:
        fields = _object(text.decode(errors="replace"))
    except _Unclear:
        return None
    return fields if isinstance(fields, str) else None


def _object(text: str) -> dict[str, Any] | str:
    """Return the object of a line, or why there is no such object."""
    if is_too_deep(text.encode()):
        return TOO_DEEP
    try:
        fields, end = DECODER.raw_decode(text.lstrip())
    except json.JSONDecodeError as problem:
        if _INFINITE in text:
            raise _Unclear from problem
        return f"no JSON: {problem.msg.removesuffix(' at')} at character {problem.pos + 1}"
    except ValueError as problem:
        raise _Unclear from problem
    if not isinstance(fields, dict):
        return f"{NO_OBJECT}: {cut(text.strip(), MOST_SHOWN)}"
    if text.lstrip()[end:].strip():
        return "something follows its object"
    if "\\u" in text and not _is_text(fields):
        return "no JSON: an escape is half of a character"
    return fields


def _is_text(fields: dict[str, Any]) -> bool:
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


DECODER = json.JSONDecoder(parse_float=WrittenFloat)
_INFINITE = "Inf"
"""A number for Arrow, not for Python."""


def _misfit(fields: dict[str, Any], known: pa.Schema, exact: Collection[str]) -> str | None:
    for field in known:
        value = fields.get(field.name)
        if value is None:
            continue
        if not _fits(value, written_type(field.type)):
            return f"column {field.name!r}: {shown(value)} is no {field.type}"
        if field.name in exact and not _is_exact(value):
            return f"column {field.name!r}: {shown(value)} {inexact_as(field.type)}"
    return None


def _fits(value: Any, kind: pa.DataType) -> bool:  # noqa: PLR0911 - one for each kind
    """Return whether a value has a written type's form; Arrow judges its text."""
    if value is None:
        return True
    if pa.types.is_integer(kind):
        if not isinstance(value, int) or isinstance(value, bool):
            return False
        bounds = np.iinfo(kind.to_pandas_dtype())
        return int(bounds.min) <= value <= int(bounds.max)
    if pa.types.is_floating(kind):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return isinstance(value, str)
    if pa.types.is_list(kind):
        return isinstance(value, list) and all(_fits(each, kind.value_type) for each in value)
    if pa.types.is_struct(kind):
        return isinstance(value, dict) and all(_fits(value.get(f.name), f.type) for f in kind)
    return True


def _is_exact(value: float) -> bool:
    if isinstance(value, WrittenFloat):
        return is_same(value.written, value)
    if isinstance(value, float):
        return True  # NaN, which has no text
    try:
        return value == float(value)
    except OverflowError:
        return False


def _not_cast(texts: dict[int, str], field: pa.Field) -> dict[int, str]:
    places = list(texts)
    return {
        places[at]: f"column {field.name!r}: {shown(texts[places[at]])} is no {field.type}"
        for at in cast_misfits(pa.array(texts.values(), pa.string()), field.type)
    }

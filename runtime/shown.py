"""Show any user value in words: bounded, and without ever raising.

Errors, notes and reports hold values of users' rows, arguments and exceptions. Such a value may be
huge, may contain itself, and its `__repr__` or `__str__` may raise; the error is still told.

```
shown([1, 2])               "[1, 2]"                         as Python writes it
shown("a" * 5_000_000)      "'aaa…aaa'"                      cut to `MOST_SHOWN` characters
shown(Broken())             "a Broken, whose __repr__ raised ValueError"
in_words(KeyError("lat"))   "KeyError: 'lat'"                class and text of an exception
```
"""

from __future__ import annotations

import linecache
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = [
    "MOST_ERROR",
    "MOST_SHOWN",
    "MOST_TEXT",
    "a_kind",
    "cut",
    "encodable",
    "frames_of",
    "in_words",
    "is_of",
    "kind_name",
    "shown",
    "text_of",
    "trace_of",
]

MOST_SHOWN = 200
"""Most characters of a value."""
MOST_TEXT = 2_000
"""Most characters of an exception's own text."""
MOST_ERROR = 40_000
"""Most characters of a whole error, which may have come from a user's code."""
_MOST_TRACE = 10_000
_MOST_FRAMES = 40
_DEEPEST = 8
_COLLECTIONS = (list, tuple, set, frozenset, deque)
_VOWELS = ("a", "e", "i", "o")  # "a UserDict", "a uint8"
_BRACKETS = {list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}")}
_TIMES = (pa.TimestampScalar, pa.Date32Scalar, pa.Date64Scalar, pa.Time32Scalar, pa.Time64Scalar)
_WRAPPED = (pa.ExtensionScalar, pa.DictionaryScalar, pa.RunEndEncodedScalar, pa.UnionScalar)
_LISTS = (pa.ListScalar, pa.LargeListScalar, pa.FixedSizeListScalar)


def encodable(text: str) -> str:
    """Return a text whose lone surrogates are written out: UTF-8 has none."""
    return text.encode(errors="backslashreplace").decode()


def kind_name(value: object) -> str:
    """Return the name of a value's class, whatever its metaclass says."""
    name: str = type.__dict__["__name__"].__get__(type(value))
    return encodable(name)


def a_kind(value: object) -> str:
    """Return a value's class after its article: "an int"; "None" of None."""
    if value is None:
        return "None"
    name = kind_name(value)
    return f"{'an' if name[:1].lower() in _VOWELS else 'a'} {name}"


def is_of(problem: BaseException, *kinds: type[BaseException]) -> bool:
    """Return whether an exception is of a class: `isinstance` may run the user's code."""
    return issubclass(type(problem), kinds)


def frames_of(problem: BaseException) -> TracebackType | None:
    """Return the frames of an exception, whatever its `__getattribute__` does."""
    frames: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(problem)
    return frames


def cut(text: str, most: int) -> str:
    """Return an encodable text; its middle is omitted if it has more than `most` characters."""
    text = encodable(text)
    if len(text) <= most:
        return text
    end = (most - 1) // 3
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def shown(value: object, most: int = MOST_SHOWN) -> str:
    """Return a value as Python writes it, in at most `most` characters.

    Args:
        value: anything, scalars of Arrow too: these are shown as their values.
        most: characters; a longer text is cut in its middle, a collection at its end.
    """
    text = ""
    try:
        for piece in _pieces(value, most, _DEEPEST):
            text += piece
            if len(text) > most:
                return f"{encodable(text)[: most - 1]}…"
    except BaseException as worse:  # exits and interrupts of the value's own code, too
        return cut(f"{text}{_unshown(value, worse)}", most)
    return cut(text, most)


def in_words(problem: BaseException, most: int = MOST_TEXT) -> str:
    """Return the class of an exception and its text, cut if long."""
    kind = kind_name(problem)
    try:
        words = str(problem)[:]
        text = cut(words, most)
    except BaseException as worse:  # the text's own exit or interrupt is not a wish to end
        return f"{kind}, whose text cannot be had (its __str__ raised {kind_name(worse)})"
    return f"{kind}: {text}" if text else kind


def text_of(problem: BaseException, most: int = MOST_TEXT) -> str:
    """Return the text of an exception, as `in_words`; its class if it has none."""
    kind, words = kind_name(problem), in_words(problem, most)
    return words.removeprefix(f"{kind}: ")


def trace_of(problem: BaseException, frames: TracebackType | None) -> str:
    """Return a traceback as Python writes it, with long texts and many frames cut."""
    try:
        summary = traceback.TracebackException(
            type(problem), problem, frames, limit=-_MOST_FRAMES, compact=True
        )
        pieces = [f"{cut(piece.rstrip(), MOST_TEXT)}\n" for piece in summary.format()]
        return cut("".join(pieces).rstrip(), _MOST_TRACE)
    except BaseException:  # Python asks the exception, whose own code may raise
        return cut("\n".join(_frames_alone(problem, frames)), _MOST_TRACE)


def _frames_alone(problem: BaseException, frames: TracebackType | None) -> Iterator[str]:
    """Yield the lines of a traceback without asking the exception for more than its text."""
    yield "Traceback (most recent call last):"
    for frame, number in deque(traceback.walk_tb(frames), _MOST_FRAMES):
        name = frame.f_code.co_filename
        yield f'  File "{name}", line {number}, in {frame.f_code.co_name}'
        try:
            line = linecache.getline(name, number, frame.f_globals).strip()
        except Exception:  # such as a name that no file can have
            line = ""
        if line:
            yield f"    {cut(line, MOST_TEXT)}"
    yield in_words(problem)


def _unshown(value: object, worse: BaseException) -> str:
    return f"{a_kind(value)}, whose __repr__ raised {kind_name(worse)}"


def _pieces(value: Any, most: int, depth: int) -> Iterator[str]:
    """Yield the text of a value in pieces, so that the rest can be omitted."""
    if isinstance(value, pa.Scalar):
        yield from _of_arrow(value, most, depth)
    elif isinstance(value, str | bytes | bytearray | int | float):
        yield _leaf(value, most)
    elif isinstance(value, (dict, *_COLLECTIONS)) and not depth:
        yield "…"
    elif isinstance(value, (dict, *_COLLECTIONS)) and _has_custom_repr(value):
        yield _leaf(value, most)
    elif isinstance(value, dict):
        yield from _named(value, _pairs(dict.items(value), most, depth), ("{", "}"), dict)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from _record(value, zip(value._fields, tuple(value), strict=False), most, depth)
    elif isinstance(value, _COLLECTIONS):
        yield from _collection(value, most, depth)
    elif is_dataclass(value) and not isinstance(value, type) and _writes_fields(value):
        own = ((each.name, getattr(value, each.name)) for each in fields(value) if each.repr)
        yield from _record(value, own, most, depth)
    else:
        yield _leaf(value, most)


def _has_custom_repr(value: object) -> bool:
    """Return whether a collection's class writes itself, such as to hide a password."""
    written: Any = type(value).__repr__
    base: Any = next(kind for kind in (dict, *_COLLECTIONS) if isinstance(value, kind))
    owner = getattr(written, "__objclass__", written)  # the class, if it is in C
    is_pythons = getattr(owner, "__module__", None) == "collections"  # named tuples, too
    return written is not base.__repr__ and not is_pythons


def _leaf(value: Any, most: int) -> str:
    """Return the text of a value without parts."""
    try:
        if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 4 * most:
            return f"a whole number of {value.bit_length():,} bits"
        if isinstance(value, str) and type(value).__repr__ is str.__repr__:
            return cut(repr(cut(str.__str__(value), most)), most)
        if isinstance(value, bytes | bytearray) and len(value) > most:
            return cut(f"{value[:most]!r}", most)
        return cut(repr(value)[:].replace("\n", " "), most)
    except BaseException as worse:
        return _unshown(value, worse)


def _collection(value: Any, most: int, depth: int) -> Iterator[str]:
    base = next(kind for kind in _COLLECTIONS if isinstance(value, kind))
    inner = (_pieces(each, most, depth - 1) for each in base.__iter__(value))
    brackets = _BRACKETS.get(base, ("[", "]") if base is deque else ("{", "}"))
    if base is tuple and len(value) == 1:
        brackets = ("(", ",)")
    if base in (set, frozenset) and not len(value):
        yield f"{type(value).__name__}()"
        return
    yield from _named(value, inner, brackets, base if base in _BRACKETS else None)


def _named(
    value: object, inner: Iterable[Iterable[str]], brackets: tuple[str, str], plain: type | None
) -> Iterator[str]:
    """Yield parts in brackets, after the name of a class that Python would name."""
    written: Any = type(value).__repr__
    is_named = plain is None or written is not plain.__repr__
    before, after = (f"{type(value).__name__}(", ")") if is_named else ("", "")
    yield from _bracketed(f"{before}{brackets[0]}", inner, f"{brackets[1]}{after}")


def _record(value: object, own: Iterable[tuple[str, Any]], most: int, depth: int) -> Iterator[str]:
    if not depth:
        yield "…"
        return
    parts = (_prefixed(f"{name}=", _pieces(part, most, depth - 1)) for name, part in own)
    yield from _bracketed(f"{type(value).__name__}(", parts, ")")


def _pairs(items: Iterable[Any], most: int, depth: int) -> Iterator[Iterator[str]]:
    for key, part in items:
        yield _prefixed(f"{shown(key, most)}: ", _pieces(part, most, depth - 1))


def _prefixed(prefix: str, pieces: Iterator[str]) -> Iterator[str]:
    yield prefix
    yield from pieces


def _bracketed(before: str, parts: Iterable[Iterable[str]], after: str) -> Iterator[str]:
    yield before
    for place, part in enumerate(parts):
        if place:
            yield ", "
        yield from part
    yield after


def _writes_fields(value: Any) -> bool:
    """Return whether a dataclass has the `__repr__` that was made for it."""
    made = getattr(type(value), "__dataclass_params__", None)
    return bool(made and made.repr) and hasattr(type(value).__repr__, "__wrapped__")


def _of_arrow(value: pa.Scalar, most: int, depth: int) -> Iterator[str]:
    """Yield the text of a scalar of Arrow; Arrow itself needs pandas for nanoseconds."""
    if not value.is_valid:
        yield "None"
    elif not depth:
        yield "…"
    elif isinstance(value, _WRAPPED):
        yield from _of_arrow(value.value, most, depth - 1)
    elif isinstance(value, _TIMES):
        yield _time_text(value)
    elif isinstance(value, pa.DurationScalar):
        yield f"{value.value} {value.type.unit}"
    elif isinstance(value, pa.MapScalar):
        pairs = ([pair[0], pair[1]] for pair in value.values)
        inner = (_prefixed(f"{shown(k, most)}: ", _pieces(v, most, depth - 1)) for k, v in pairs)
        yield from _bracketed("{", inner, "}")
    elif isinstance(value, _LISTS):
        inner = (_pieces(each, most, depth - 1) for each in value.values)
        yield from _bracketed("[", inner, "]")
    elif isinstance(value, pa.StructScalar):
        parts = ((field.name, value[at]) for at, field in enumerate(value.type))
        yield from _bracketed("{", _pairs(parts, most, depth), "}")
    else:
        yield _plain_of_arrow(value, most)


def _plain_of_arrow(value: pa.Scalar, most: int) -> str:
    try:
        return _leaf(value.as_py(), most)
    except BaseException:  # text that is not UTF-8, a value that Python has not
        return f"a {value.type} that cannot be shown"


def _time_text(value: Any) -> str:
    """Return a date or time as text, with a Z if it has a zone."""
    kind = value.type
    unit: Any = "D" if pa.types.is_date32(kind) else "ms" if pa.types.is_date64(kind) else kind.unit
    text = str(np.datetime64(value.value, unit))
    if pa.types.is_time(kind):
        return text.partition("T")[2]
    return f"{text}Z" if getattr(kind, "tz", None) else text

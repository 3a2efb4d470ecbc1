"""JSON form of dataclasses, both ways: a key for each field.

```
report ──▶ {"name": "jams", "rows_in": 7, …, "selectivity": 0.5}    fields, then derived values
report ◀──  fields alone, each of its declared type: JSON is untrusted
```

A `JsonView` is written only, by its table of keys. A class with another form has its own `to_json`
and `from_json`, such as a histogram.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from functools import cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from slackwater.runtime.shown import a_kind, shown

__all__ = ["JsonObject", "JsonView", "View", "json_bytes", "json_text", "spread", "typed"]

View: TypeAlias = "Mapping[str, str | Callable[[Any], Any] | View]"
"""{key: attribute, as `rule.text`; or a function of the object; or a view inside}."""

_Read: TypeAlias = Callable[[str, Any], Any]
"""Reader of a declared type, given the name and the value."""
_MOST_BITS = 100
"""Most bits of a number: sums of times over rows may need more than 64."""


class JsonObject:
    """Dataclass that is a JSON object, with a key for each field."""

    __slots__ = ()

    DERIVED: ClassVar[Mapping[str, str]] = {}
    """{key: property, as `rule.text`}: values that are written after the fields, and not read."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain JSON values, then the derived values."""
        kind: Any = type(self)
        plain: dict[str, Any] = {}
        for own in _fields(kind):
            value = getattr(self, own.name)
            if own.spread is None:
                plain[own.name] = _plain(value)
            else:
                plain.update(own.spread.write(value))
        for key, name in self.DERIVED.items():
            plain[key] = attrgetter(name)(self)
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        """Return the object that `to_json` described; keys of other releases are ignored.

        Numbers must be finite, and of at most 100 bits.

        Raises:
            KeyError, TypeError, ValueError, OverflowError: a field is missing, or has another type.
        """
        if not isinstance(plain, Mapping):
            raise TypeError(f"{cls.__name__} is {a_kind(plain)}, and has to be an object")
        kind: Any = cls
        known: dict[str, Any] = {}
        for own in _fields(kind):
            if own.spread is not None:
                known[own.name] = own.spread.read(plain)
            elif own.name in plain:
                known[own.name] = typed(own.where, plain[own.name], own.hint)
        return cls(**known)


class JsonView:
    """Object with a JSON form of chosen values, which is not read back.

    JSON has no infinity: a number without bound is null.
    """

    __slots__ = ()

    JSON: ClassVar[View]

    def to_json(self) -> dict[str, Any]:
        """Return the values of `JSON` as plain JSON values."""
        return _viewed(self, self.JSON)


class _Spread(NamedTuple):
    write: Callable[[Any], Mapping[str, Any]]
    read: Callable[[Mapping[str, Any]], Any]


def spread(
    write: Callable[[Any], Mapping[str, Any]], read: Callable[[Mapping[str, Any]], Any]
) -> dict[str, Any]:
    """Return metadata of a field whose value is written under several keys of its object.

    Args:
        write: returns these keys for a value.
        read: returns the value of an object that has these keys, among others.
    """
    return {_Spread.__name__: _Spread(write, read)}


def typed(where: str, value: Any, hint: Any) -> Any:
    """Return a value of JSON as one of a declared type.

    Args:
        where: name of the value, for errors.
        value: value as JSON has it.
        hint: declared type, as `typing.get_type_hints` returns it.

    Raises:
        KeyError, TypeError, ValueError, OverflowError: it is of another type.
    """
    return _reader(hint)(where, value)


def json_text(plain: Mapping[str, Any]) -> str:
    """Return JSON on one line; NumPy's numbers are allowed."""
    return json.dumps(plain, ensure_ascii=False, default=lambda number: number.item())


def json_bytes(plain: Mapping[str, Any]) -> bytes:
    """Return the bytes of `json_text`; a lone surrogate is an escape of JSON."""
    return json_text(plain).encode(errors="backslashreplace")


class _JsonField(NamedTuple):
    name: str
    where: str
    hint: Any
    spread: _Spread | None


@cache
def _fields(kind: Any) -> tuple[_JsonField, ...]:
    hints = get_type_hints(kind)
    every: tuple[Field[Any], ...] = fields(kind)
    return tuple(
        _JsonField(
            name=own.name,
            where=f"{kind.__name__}.{own.name}",
            hint=hints[own.name],
            spread=own.metadata.get(_Spread.__name__),
        )
        for own in every
    )


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is list or kind is tuple:
        return kind(map(_plain, value))
    if isinstance(value, Mapping):
        return {key: _plain(own) for key, own in value.items()}
    to_json = getattr(value, "to_json", None)
    return value if to_json is None else to_json()


def _viewed(whole: object, view: View) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, way in view.items():
        if isinstance(way, Mapping):
            plain[key] = _viewed(whole, way)
        else:
            plain[key] = _bounded((attrgetter(way) if isinstance(way, str) else way)(whole))
    return plain


def _bounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _bounded(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_bounded(own) for own in value]
    if isinstance(value, float):
        return None if math.isinf(value) else value
    return _plain(value)


@cache
def _reader(hint: Any) -> _Read:  # noqa: PLR0911 - a branch for each kind
    """Return the reader of a declared type: `read(where, value)` returns the value, or raises."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda _, value: value
    if origin in (Union, UnionType):
        (own,) = (_reader(each) for each in inside if each is not NoneType)
        return lambda where, value: None if value is None else own(where, value)
    if origin is Literal:
        return partial(_literal, inside)
    if origin in (dict, Mapping):
        return partial(_dict, _reader(inside[0]), _reader(inside[1]))
    if origin is list:
        return partial(_list, _reader(inside[0]))
    if origin is tuple and inside[-1] is Ellipsis:
        return partial(_tuple, _reader(inside[0]))
    if origin is tuple:
        return partial(_record, tuple, list(map(_reader, inside)))
    if hasattr(hint, "from_json"):
        return lambda _, value: hint.from_json(value)
    if issubclass(hint, tuple):  # a NamedTuple
        return partial(_record, hint._make, list(map(_reader, get_type_hints(hint).values())))
    return {float: _float, int: _int}.get(hint) or partial(_instance, hint)


def _literal(names: tuple[Any, ...], where: str, value: Any) -> Any:
    if value not in names:
        raise ValueError(f"{where}={shown(value)} must be one of {', '.join(map(repr, names))}")
    return value


def _dict(of_key: _Read, of_value: _Read, where: str, value: Any) -> dict[Any, Any]:
    pairs = _instance(dict, where, value).items()
    return {of_key(where, key): of_value(where, own) for key, own in pairs}


def _list(read: _Read, where: str, value: Any) -> list[Any]:
    return [read(where, each) for each in _instance(list, where, value)]


def _tuple(read: _Read, where: str, value: Any) -> tuple[Any, ...]:
    return tuple([read(where, each) for each in _sequence(where, value)])


def _record(make: Callable[[list[Any]], Any], reads: list[_Read], where: str, value: Any) -> Any:
    values = zip(reads, _sequence(where, value), strict=True)
    return make([read(where, each) for read, each in values])


def _float(where: str, value: Any) -> Any:
    if type(value) not in (float, int) or not math.isfinite(float(value)):
        raise TypeError(f"{where}={shown(value)} is not a number")
    return value


def _int(where: str, value: Any) -> Any:
    if _instance(int, where, value).bit_length() > _MOST_BITS:
        raise ValueError(f"{where} is a number of more than {_MOST_BITS} bits")
    return value


def _sequence(where: str, value: Any) -> Any:
    # A snapshot, which is not text, has tuples where JSON has lists.
    return value if isinstance(value, tuple) else _instance(list, where, value)


def _instance(kind: type, where: str, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{where}={shown(value)} is {a_kind(value)}, not of {kind.__name__}")
    return value

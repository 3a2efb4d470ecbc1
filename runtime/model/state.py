"""Declared state: a class names its fields, and one walker saves and restores them.

```
class Frontier:
    STATE = Fields("promises_ns", "newest_ns", "_idle")

save(frontier) ─▶ {"promises_ns": [7, 9], "newest_ns": 9, "idle": [1]} ─▶ restore(fresh, …)
```

A field whose elements belong to keys says so: `Field("_times", by="_codes")`. The walker that keeps
some of the keys uses it (`runtime/model/divided.py`).

A class without STATE packs itself: it has `snapshot()` and `restore(state)`, where what it keeps is
not what it saves, such as arrays with room for more rows. What the walker saves shares no container
with its machine, and no array that changes: batches, messages, read-only arrays, and values of
arrays to which more are only added, are shared (`runtime/model/plain.py` makes them plain values).

A machine with much state may be saved in steps (`runtime/model/later.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from slackwater.runtime.model.batch import Batch
from slackwater.runtime.model.later import Later
from slackwater.runtime.model.message import Message

_AS_THEY_ARE = frozenset({type(None), bool, int, float, str, bytes, Batch, Message})
_CONTAINERS = (set, frozenset, deque)
MadeBy = Callable[..., Any] | str
"""See `Fields`."""


OWNER: Final = ""
"""Numbers by which its owner divides a machine; of an operator, its keys' codes."""


class Field(NamedTuple):
    """A field whose elements belong to numbers: codes of keys, rows, cells.

    ```
    Field("_codes", of="_keys")      each element is a number of `_keys`; rows are numbered by it
    Field("_times", by="_codes")     element n belongs to row n
    Field("_newest", by="_keys")     element n belongs to key n, as the value of a dict's key n
    ```

    Args:
        name: name of the attribute.
        by: the field of which a number has each element, or OWNER.
        of: the field whose numbers the elements are, or OWNER. Of a batch or a record these are its
            `codes`; a machine says by its own fields where they are.
        each: whether that is so of each element of a list or dict, not of the whole.
    """

    name: str
    by: str | None = None
    of: str | None = None
    each: bool = False

    @property
    def divided_by(self) -> str | None:
        """The field, or OWNER, that divides it; None if none exists."""
        return self.of if self.by is None else self.by


class Fields:
    """Fields of a class's state, in the order in which they are restored.

    A field may hold plain values, arrays, batches, messages, machines (objects with state of their
    own), records (NamedTuples and dataclasses of plain values), and lists, tuples, deques, sets and
    dicts of these. A machine that is there is restored in place; a record is of the type of the one
    that is there. A field may be a property, where what is kept is not what is saved.

    Args:
        fields: the attributes: names, and a `Field` where elements belong to numbers, after the
            field that it is divided by. A leading underscore is not saved.
        elements: {name: what its value, or each element of it, is made by}. A type of record, or a
            function that returns one, is called with its saved values; `set` and `deque` are
            called with their elements. A type of machine, or the method that a text names, makes a
            fresh machine: without argument for a value, with the key or the position for an
            element of a dict or list.

    Raises:
        TypeError: two names are saved as one, or a field is divided by none before it.
    """

    __slots__ = ("divided", "elements", "names")

    def __init__(self, *fields: str | Field, elements: Mapping[str, MadeBy] | None = None) -> None:
        names = [field if isinstance(field, str) else field.name for field in fields]
        if len({name.lstrip("_") for name in names}) < len(names):
            raise TypeError(f"fields {', '.join(names)}: two of them are saved by one name")
        self.names: Final = tuple(names)
        self.elements: Final[Mapping[str, MadeBy]] = elements or {}
        self.divided: Final = tuple(field for field in fields if isinstance(field, Field))
        known = {OWNER}
        for field in self.divided:
            if field.divided_by not in known:
                raise TypeError(f"field {field.name}: no field {field.divided_by!r} is before it")
            known.add(field.name)

    def __add__(self, more: Fields) -> Fields:
        """Return these fields, then those of a subclass."""
        return Fields(*self._all, *more._all, elements={**self.elements, **more.elements})

    @property
    def _all(self) -> list[str | Field]:
        divided = {field.name: field for field in self.divided}
        return [divided.get(name, name) for name in self.names]


def save(machine: Any, later: list[Later] | None = None) -> Any:
    """Return the state of a machine; of a class with STATE a dict, by field.

    Args:
        machine: owner of the state.
        later: gets what is saved in steps, which is in the state as it is; None if nothing is.
    """
    declared = declared_of(machine)
    if declared is not None:
        return {n.lstrip("_"): _saved(getattr(machine, n), later) for n in declared.names}
    if later is None or not hasattr(machine, "snapshot_later"):
        return machine.snapshot()
    later.append(begun := machine.snapshot_later())
    return begun


def restore(machine: Any, state: Any) -> None:
    """Continue from a saved state, in a fresh machine.

    A class whose other attributes follow from its state sets them in `derive()`, here
    and after `keep_keys`.
    """
    declared = declared_of(machine)
    if declared is None:
        machine.restore(state)
        return
    for name in declared.names:
        made_by = declared.elements.get(name)
        make = getattr(machine, made_by) if isinstance(made_by, str) else made_by
        makes_machines = isinstance(made_by, str) or (
            isinstance(made_by, type) and _is_machine(made_by)
        )
        value = _restored(
            getattr(machine, name), state[name.lstrip("_")], _Make(make, makes_machines)
        )
        setattr(machine, name, value)
    if (derive := getattr(machine, "derive", None)) is not None:
        derive()


class _Make(NamedTuple):
    """Function that makes a value or element; `fresh`: a fresh machine, of its key."""

    call: Callable[..., Any] | None
    fresh: bool


def declared_of(machine: Any) -> Fields | None:
    """Return the fields of a machine's class; None if it packs itself."""
    for base in type(machine).__mro__:
        if isinstance(declared := vars(base).get("STATE"), Fields):
            return declared
        if "snapshot" in vars(base):
            return None
    return None


def _is_machine(kind: type) -> bool:
    if isinstance(getattr(kind, "STATE", None), Fields):
        return True
    return hasattr(kind, "snapshot") and hasattr(kind, "restore")


def _is_record(value: Any) -> bool:
    return is_dataclass(value) or hasattr(type(value), "_fields")


def _is_made_in_place(value: Any) -> bool:
    return _is_machine(type(value)) or _is_record(value)


def _has_a_type(element: Any) -> bool:
    """Whether an element that is there says the type of the one that is restored."""
    return isinstance(element, deque) or _is_made_in_place(element)


def _saved(value: Any, later: list[Later] | None) -> Any:  # noqa: PLR0911 - one for each kind
    if type(value) in _AS_THEY_ARE:
        return value
    if _is_machine(type(value)):
        return save(value, later)
    match value:
        case np.ndarray():
            return value.copy() if value.flags.writeable else value
        case dict():
            return {key: _saved(own, later) for key, own in value.items()}
        case set() | frozenset():
            return sorted(value)
        case tuple():
            return tuple([_saved(own, later) for own in value])
        case list() | deque():  # most have many plain values
            return [own if type(own) in _AS_THEY_ARE else _saved(own, later) for own in value]
    if is_dataclass(value):
        return tuple([_saved(getattr(value, field.name), later) for field in fields(value)])
    return value


def _restored(now: Any, saved: Any, make: _Make) -> Any:  # noqa: PLR0911 - one for each kind
    """Return a saved value of a field; `now` is what the fresh owner has there."""
    if _is_made_in_place(now):
        return _element(now, saved, make)
    if type(saved) in _AS_THEY_ARE and (make.call is None or saved is None):
        return saved
    match now:
        case dict():
            if make.call is None and any(map(_is_made_in_place, now.values())):
                _check_same(now.keys() == saved.keys(), now, saved)
            fresh = {key: _element(now.get(key), own, make, key) for key, own in saved.items()}
            now.clear()
            now.update(fresh)
            return now
        case list() | deque() | tuple():
            if make.call is None and not any(map(_has_a_type, now)):
                made = _copied(saved)
            else:
                if make.call is None:
                    _check_same(len(now) == len(saved), now, saved)
                there = list(now) if len(now) == len(saved) else [None] * len(saved)
                pairs = enumerate(zip(there, saved, strict=True))
                made = [_element(*pair, make, at) for at, pair in pairs]
            if isinstance(now, tuple):
                return tuple(made)
            now.clear()
            now.extend(made)
            return now
        case set() | frozenset():
            return type(now)(saved)
    return _element(now, saved, make)


def _check_same(is_same: bool, now: Any, saved: Any) -> None:
    if not is_same:
        raise ValueError(f"{len(saved)} machines were saved, and {len(now)} others are there")


def _element(now: Any, saved: Any, make: _Make, *key: Any) -> Any:
    """Return a saved value or element: by what makes it, or as what is there."""
    packs_itself = _is_machine(type(now)) and declared_of(now) is None  # and may save anything
    if saved is None and not packs_itself:
        return None
    if make.call in _CONTAINERS:
        return make.call(_copied(saved))
    if make.call is not None and not make.fresh:
        return make.call(*_copied(saved))
    if make.call is not None and not _is_machine(type(now)):
        now = make.call(*key)
    if _is_machine(type(now)):
        restore(now, saved)
        return now
    if isinstance(now, deque):
        return deque(_copied(saved), maxlen=now.maxlen)
    return type(now)(*_copied(saved)) if _is_record(now) else _copied(saved)


def _copied(saved: Any) -> Any:
    """Return a saved value that shares no container and no array with the saved one."""
    if type(saved) in _AS_THEY_ARE:
        return saved
    match saved:
        case np.ndarray():
            return saved.copy()
        case dict():
            return {key: _copied(own) for key, own in saved.items()}
        case tuple():
            return tuple([_copied(own) for own in saved])
        case list():
            return [own if type(own) in _AS_THEY_ARE else _copied(own) for own in saved]
    return saved

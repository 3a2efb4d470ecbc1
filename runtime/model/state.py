"""Declared state: a class names its fields, and one walker saves and restores them.

```
class Frontier:
    STATE = Fields("promises_ns", "newest_ns", "_idle")

save(frontier) ─▶ {"promises_ns": [7, 9], "newest_ns": 9, "idle": [1]} ─▶ restore(fresh, …)
```

A class without STATE packs itself: it has `snapshot()` and `restore(state)`, where what it keeps is
not what it saves, such as arrays with room for more rows. What is saved shares no container and no
array with its machine; batches and messages are frozen, and shared (`runtime/model/plain.py` turns
them into plain values).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np

from slackwater.runtime.model.batch import Batch
from slackwater.runtime.model.message import Message

_AS_THEY_ARE = frozenset({type(None), bool, int, float, str, bytes, Batch, Message})


class Fields:
    """Fields of a class's state, in the order in which they are restored.

    A field may hold plain values, arrays, batches, messages, machines (objects with state of their
    own), and lists, tuples, deques, sets and dicts of these. A machine that is there is restored
    in place. A field may be a property, where what is kept is not what is saved.

    Args:
        names: of the attributes. A leading underscore is not saved.
        elements: {name: what its value, or each element of it, is made by}. A type of record (a
            NamedTuple or dataclass of plain values) is made from its saved values; a type of
            machine, or the method that a text names, makes a fresh machine: without argument for
            a value, with the key or the position for an element of a dict or list.

    Raises:
        TypeError: two names are saved as one.
    """

    __slots__ = ("elements", "names")

    def __init__(self, *names: str, elements: Mapping[str, type | str] | None = None) -> None:
        if len({name.lstrip("_") for name in names}) < len(names):
            raise TypeError(f"fields {', '.join(names)}: two of them are saved by one name")
        self.names: Final = names
        self.elements: Final[Mapping[str, type | str]] = elements or {}

    def __add__(self, more: Fields) -> Fields:
        """Return these fields, then those of a subclass."""
        return Fields(*self.names, *more.names, elements={**self.elements, **more.elements})


def save(machine: Any) -> Any:
    """Return the state of a machine; of a class with STATE a dict, by field."""
    declared = _declared(machine)
    if declared is None:
        return machine.snapshot()
    return {name.lstrip("_"): _saved(getattr(machine, name)) for name in declared.names}


def restore(machine: Any, state: Any) -> None:
    """Continue from a saved state, in a fresh machine.

    A class whose other attributes follow from its state derives them in `after_restore()`.
    """
    declared = _declared(machine)
    if declared is None:
        machine.restore(state)
        return
    for name in declared.names:
        made_by = declared.elements.get(name)
        make = getattr(machine, made_by) if isinstance(made_by, str) else made_by
        value = _restored(getattr(machine, name), state[name.lstrip("_")], make)
        setattr(machine, name, value)
    if (derive := getattr(machine, "after_restore", None)) is not None:
        derive()


def _declared(machine: Any) -> Fields | None:
    declared: Fields | None = getattr(type(machine), "STATE", None)
    return declared


def _is_machine(kind: type) -> bool:
    return hasattr(kind, "STATE") or (hasattr(kind, "snapshot") and hasattr(kind, "restore"))


def _saved(value: Any) -> Any:  # noqa: PLR0911 - one for each kind
    if type(value) in _AS_THEY_ARE:
        return value
    if _is_machine(type(value)):
        return save(value)
    match value:
        case np.ndarray():
            return value.copy()
        case dict():
            return {key: _saved(own) for key, own in value.items()}
        case set() | frozenset():
            return sorted(value)
        case tuple():
            return tuple([_saved(own) for own in value])
        case list() | deque():
            return [_saved(own) for own in value]
    if is_dataclass(value):
        return tuple([_saved(getattr(value, one.name)) for one in fields(value)])
    return value


def _restored(now: Any, saved: Any, make: Any) -> Any:  # noqa: PLR0911 - one for each kind
    """Return a saved value; `now` is what the fresh machine has there."""
    if type(now) is make or _is_machine(type(now)):
        return _one(now, saved, make)
    if type(saved) in _AS_THEY_ARE and (make is None or saved is None):
        return saved
    match now:
        case dict():
            fresh = {key: _one(now.get(key), own, make, key) for key, own in saved.items()}
            now.clear()
            now.update(fresh)
            return now
        case list() | deque() | tuple():
            if (
                make is None
                and isinstance(now, tuple)
                and not any(map(_is_machine, map(type, now)))
            ):
                return _copied(saved)
            there = list(now) if len(now) == len(saved) else [None] * len(saved)
            made = [_one(*pair, make, at) for at, pair in enumerate(zip(there, saved, strict=True))]
            if isinstance(now, tuple):
                return tuple(made)
            now.clear()
            now.extend(made)
            return now
        case set() | frozenset():
            return type(now)(saved)
    return _one(now, saved, make)


def _one(now: Any, saved: Any, make: Any, *key: Any) -> Any:
    """Return a saved value or element, in the present machine or a fresh one."""
    is_there = _is_machine(type(now))
    if saved is None and not (is_there and _declared(now) is None):  # which may save anything
        return None
    if isinstance(make, type) and not _is_machine(make):
        return make(*_copied(saved))
    if make is not None and not is_there:
        now = make(*key)
    if _is_machine(type(now)):
        restore(now, saved)
        return now
    if isinstance(now, deque):
        return _restored(now, saved, None)
    return _copied(saved)


def _copied(saved: Any) -> Any:
    """Return a saved value that shares no container and no array with the saved one."""
    match saved:
        case np.ndarray():
            return saved.copy()
        case dict():
            return {key: _copied(own) for key, own in saved.items()}
        case tuple():
            return tuple([_copied(own) for own in saved])
        case list():
            return [_copied(own) for own in saved]
    return saved

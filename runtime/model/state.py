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
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np

from slackwater.runtime.model.batch import Batch
from slackwater.runtime.model.message import Message

_AS_THEY_ARE = frozenset({type(None), bool, int, float, str, bytes, Batch, Message})
_CONTAINERS = (set, frozenset, deque)
MadeBy = Callable[..., Any] | str
"""See `Fields`."""


class Fields:
    """Fields of a class's state, in the order in which they are restored.

    A field may hold plain values, arrays, batches, messages, machines (objects with state of their
    own), records (NamedTuples and dataclasses of plain values), and lists, tuples, deques, sets and
    dicts of these. A machine that is there is restored in place, a record is of the type of the one
    that is there.

    Args:
        names: of the attributes. A leading underscore is not saved.
        elements: {name: what its value, or each element of it, is made by}. A type of record, or a
            function that returns one, is called with its saved values; `set` and `deque` are
            called with their elements. A text names the method that returns a fresh machine:
            without argument for a value, with the key or the position for an element of a dict or
            list.
    """

    __slots__ = ("elements", "names")

    def __init__(self, *names: str, elements: Mapping[str, MadeBy] | None = None) -> None:
        self.names: Final = names
        self.elements: Final[Mapping[str, MadeBy]] = elements or {}

    def __add__(self, more: Fields) -> Fields:
        """Return these fields, then those of a subclass."""
        return Fields(*self.names, *more.names, elements={**self.elements, **more.elements})


def save(machine: Any) -> Any:
    """Return a machine's state: of a class with STATE a dict by field names."""
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
        now = getattr(machine, name)
        value = _restored(now, state[name.lstrip("_")], machine, declared.elements.get(name))
        if value is not now:
            setattr(machine, name, value)
    if (derive := getattr(machine, "after_restore", None)) is not None:
        derive()


def _declared(machine: Any) -> Fields | None:
    declared: Fields | None = getattr(type(machine), "STATE", None)
    return declared


def _is_machine(value: Any) -> bool:
    kind = type(value)
    return hasattr(kind, "STATE") or (hasattr(kind, "snapshot") and hasattr(kind, "restore"))


def _saved(value: Any) -> Any:  # noqa: PLR0911 - one for each kind
    if type(value) in _AS_THEY_ARE:
        return value
    if _is_machine(value):
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
        case list() | deque():  # most have many plain values
            return [own if type(own) in _AS_THEY_ARE else _saved(own) for own in value]
    if is_dataclass(value):
        return tuple([_saved(getattr(value, one.name)) for one in fields(value)])
    return value


def _restored(now: Any, saved: Any, owner: Any, made_by: MadeBy | None) -> Any:  # noqa: PLR0911 - one for each kind
    """Return a saved value of a field; `now` is what the fresh owner has there."""
    if type(saved) in _AS_THEY_ARE:
        return saved
    if _is_machine(now) or _is_record(now):
        return _one(now, saved, owner, made_by)
    match now:
        case dict():
            fresh = {
                key: _one(now.get(key), own, owner, made_by, key) for key, own in saved.items()
            }
            now.clear()
            now.update(fresh)
            return now
        case list() | deque() | tuple():
            if made_by is None and not any(_is_machine(one) or _is_record(one) for one in now):
                made = _copied(saved)
            else:
                there = list(now) if len(now) == len(saved) else [None] * len(saved)
                pairs = enumerate(zip(there, saved, strict=True))
                made = [_one(*pair, owner, made_by, at) for at, pair in pairs]
            if isinstance(now, tuple):
                return tuple(made)
            now.clear()
            now.extend(made)
            return now
        case set() | frozenset():
            return type(now)(saved)
    return _one(now, saved, owner, made_by)


def _one(now: Any, saved: Any, owner: Any, made_by: MadeBy | None, *key: Any) -> Any:
    """Return one saved value or element: by what makes it, or as what is there."""
    if saved is None or (now is None and made_by is None):
        return _copied(saved)
    if isinstance(made_by, str):
        if not _is_machine(now):
            now = getattr(owner, made_by)(*key)
    elif made_by in _CONTAINERS:
        return made_by(_copied(saved))
    elif made_by is not None:
        return made_by(*_copied(saved))
    if _is_machine(now):
        restore(now, saved)
        return now
    return type(now)(*_copied(saved)) if _is_record(now) else _copied(saved)


def _is_record(value: Any) -> bool:
    return is_dataclass(value) or hasattr(type(value), "_fields")


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

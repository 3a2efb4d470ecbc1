"""State divided by key: one walker keeps the part of some keys.

```
_keys    by OWNER     code  0 1 2 3    keep_keys(machine, [1, 3])    code  0 1
_codes   of "_keys"   row   1 0 3 1   ─────────────────────────▶    row   0 1 0
_times   by "_codes"        5 6 7 9                                        5 7 9
```

Keys have dense codes in order of appearance, which say nothing of the keys. So each field of the
state names what it is divided by (`Field`), and the walker follows: from codes to rows, from rows
to whatever lies beside them. Fields that name nothing belong to all keys, and stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.runtime.model.batch import Batch, Int64Array
from slackwater.runtime.model.state import OWNER, Field, declared_of


class StayingNumbers:
    """Numbers that stay; they close up, in the same order.

    Args:
        stay: the old numbers, distinct and ascending.
    """

    __slots__ = ("stay",)

    def __init__(self, stay: Int64Array) -> None:
        self.stay = stay

    def moved(self, numbers: Int64Array) -> Int64Array:
        """Return the new number of each old one; −1 for the forgotten."""
        size = max(int(numbers.max(initial=-1)), int(self.stay.max(initial=-1))) + 1
        table = np.full(size, -1, dtype=np.int64)
        table[self.stay] = np.arange(len(self.stay))
        return table.take(numbers)


def keep_keys(machine: Any, codes: Int64Array) -> None:
    """Forget all keys of an operator but those of these codes.

    They close up in ascending order. From now on the operator makes of rows of these keys what it
    would have made, and holds nothing of other keys. Rows of a forgotten key find it as new. Counts
    so far stay.

    Args:
        machine: operator whose keys go.
        codes: codes of keys that stay, in any order, some of them several times.
    """
    _keep_divided(machine, {OWNER: StayingNumbers(distinct(codes))})


def distinct(codes: Int64Array) -> Int64Array:
    """Return the distinct ones of dense codes, ascending: by marks, without a sort."""
    is_there = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.bool_)
    is_there[codes] = True
    return is_there.nonzero()[0]


def keep(machine: Any, name: str, stay: Int64Array) -> None:
    """Forget all numbers of one field, such as rows, but these.

    They are distinct and ascending.
    """
    staying = StayingNumbers(stay)
    setattr(machine, name, _picked(getattr(machine, name), staying))
    _keep_divided(machine, {name: staying})


def _keep_divided(machine: Any, staying: dict[str, StayingNumbers]) -> StayingNumbers | None:
    """Keep what belongs to numbers of the given fields or of OWNER.

    Return which numbers stay of the machine's own: of its first field that has codes; else None.
    """
    declared = declared_of(machine)
    assert declared is not None, "a machine that packs itself has keep() or renumber()"
    own: StayingNumbers | None = None
    for field in declared.divided:
        assert field.divided_by is not None
        numbers = staying.get(field.divided_by)
        if numbers is None or field.name in staying:
            continue
        value, rows = _staying(getattr(machine, field.name), numbers, field)
        setattr(machine, field.name, value)
        staying[field.name] = numbers if rows is None else rows
        own = own or rows
    if (derive := getattr(machine, "derive", None)) is not None:
        derive()
    return own


def _staying(
    value: Any, numbers: StayingNumbers, field: Field
) -> tuple[Any, StayingNumbers | None]:
    """Return what stays of a field's value, and which of its own numbers stay."""
    if not field.each:
        return (_picked(value, numbers), None) if field.of is None else _renumbered(value, numbers)
    if field.of is None:
        if isinstance(value, dict):
            return {key: _picked(own, numbers) for key, own in value.items()}, None
        return type(value)([_picked(own, numbers) for own in value]), None
    parts = [_renumbered(own, numbers) for own in value]
    return [own for own, rows in parts if rows is not None and len(rows.stay)], None


def _picked(value: Any, staying: StayingNumbers) -> Any:
    """Return the elements of the numbers that stay."""
    match value:
        case None:
            return None
        case dict():
            codes = np.fromiter(value, np.int64, len(value))
            pairs = zip(staying.moved(codes).tolist(), value.values(), strict=True)
            return {code: own for code, own in pairs if code >= 0}
        case np.ndarray() | Batch():
            return _elements_at(value, staying.stay)
        case tuple():  # a record of arrays
            return type(value)(*(_picked(own, staying) for own in value))
        case list():
            return [value[number] for number in staying.stay.tolist()]
    if hasattr(value, "keep"):
        value.keep(staying.stay)
    else:
        _keep_divided(value, {OWNER: staying})
    return value


def _renumbered(value: Any, staying: StayingNumbers) -> tuple[Any, StayingNumbers | None]:
    """Return the rows whose codes stay, with new codes, and which of the rows stay."""
    match value:
        case None:
            return None, None
        case np.ndarray():
            codes, rows = _new_codes(value, staying)
            return codes, rows
        case Batch():
            assert value.codes is not None, "who holds rows by key gives them codes"
            codes, rows = _new_codes(value.codes, staying)
            return value.take(rows.stay).with_(codes=codes), rows
        case tuple():
            codes, rows = _new_codes(value.codes, staying)  # type: ignore[attr-defined]
            return _picked(value, rows)._replace(codes=codes), rows
    if hasattr(value, "renumber"):
        return value, value.renumber(staying)
    return value, _keep_divided(value, {OWNER: staying})


def _new_codes(codes: Int64Array, staying: StayingNumbers) -> tuple[Int64Array, StayingNumbers]:
    moved = staying.moved(codes)
    rows = np.flatnonzero(moved >= 0)
    moved.flags.writeable = codes.flags.writeable
    return _elements_at(moved, rows), StayingNumbers(rows)


def _elements_at(value: Any, places: Int64Array) -> Any:
    """Return the elements at some places, of an array that is read-only as read-only, too."""
    elements = value.take(places)
    if isinstance(elements, np.ndarray):
        elements.flags.writeable = value.flags.writeable
    return elements

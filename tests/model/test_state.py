"""Declared state, saved and restored by the one walker."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import Fields, restore, save


class _Place(NamedTuple):
    row: int
    of: str


class _Alone:
    """Packs itself, and saves a number."""

    def __init__(self) -> None:
        self.number: int | None = 3

    def snapshot(self) -> int | None:
        return self.number

    def restore(self, state: int | None) -> None:
        self.number = state


@dataclass(frozen=True)
class _Span:
    begin: _Place
    rows: int


def _span_of(begin: tuple[int, str], rows: int) -> _Span:
    return _Span(_Place(*begin), rows)


class _Packed:
    """Keeps room for more than it has."""

    def __init__(self) -> None:
        self.room = [0, 0, 0]

    def snapshot(self) -> list[int]:
        return self.room[:1]

    def restore(self, state: list[int]) -> None:
        self.room[:1] = state


class _Counter:
    STATE = Fields("count", "_times")

    def __init__(self) -> None:
        self.count = 0
        self._times = np.zeros(0, dtype=np.int64)


class _Machine:
    STATE = Fields(
        "_late",
        "places",
        "waiting",
        "of_key",
        "parts",
        "packed",
        "maybe",
        "names",
        "alone",
        "lines",
        "last",
        "doubled",
        "place",
        "span",
        "gone",
        elements={
            "places": _Place,
            "of_key": "_new_counter",
            "maybe": _Counter,
            "last": _Place,
            "span": _span_of,
            "gone": set,
        },
    )

    def __init__(self) -> None:
        self._late = False
        self.places: deque[_Place] = deque(maxlen=9)
        self.waiting: list[Any] = []
        self.of_key: dict[int, _Counter] = {}
        self.parts = [_Counter(), _Counter()]
        self.packed = _Packed()
        self.maybe: _Counter | None = None
        self.names: set[str] = set()
        self.alone = _Alone()
        self.lines: list[deque[int]] = [deque(), deque()]
        self.last = _Place(0, "")
        self.half = 0
        self.place = _Place(0, "")
        self.span: _Span | None = None
        self.gone: dict[int, set[int]] = {}
        self.total = 0

    def _new_counter(self, key: int) -> _Counter:
        made = _Counter()
        made.key = key  # type: ignore[attr-defined]
        return made

    @property
    def doubled(self) -> list[int]:
        return [2 * self.half]

    @doubled.setter
    def doubled(self, doubled: list[int]) -> None:
        self.half = doubled[0] // 2

    def derive(self) -> None:
        self.total = sum(one.count for one in self.of_key.values())


def _full() -> _Machine:
    machine = _Machine()
    machine._late = True
    machine.places.append(_Place(3, "a"))
    machine.waiting = [(1, [2, 3]), {"x": None}]
    for key in (5, 7):
        machine.of_key[key] = machine._new_counter(key)
        machine.of_key[key].count = key
    machine.parts[1]._times = np.array([4, 6])
    machine.packed.room[0] = 8
    machine.maybe = _Counter()
    machine.names = {"b", "a"}
    machine.alone.number = None
    machine.lines[1].append(6)
    machine.last = _Place(9, "z")
    machine.half = 4
    machine.place = _Place(4, "b")
    machine.span = _Span(_Place(5, "c"), 2)
    machine.gone = {3: {8, 6}}
    machine.derive()
    return machine


def test_a_fresh_machine_continues_from_what_was_saved() -> None:
    state = from_plain(to_plain(save(_full())))
    fresh = _Machine()
    parts = list(fresh.parts)
    restore(fresh, state)
    assert fresh._late
    assert fresh.total == 12
    assert fresh.names == {"a", "b"}
    assert fresh.places == deque([_Place(3, "a")])
    assert fresh.places.maxlen == 9
    assert isinstance(fresh.places[0], _Place)
    assert fresh.waiting == [(1, [2, 3]), {"x": None}]
    assert {key: (one.key, one.count) for key, one in fresh.of_key.items()} == {  # type: ignore[attr-defined]
        5: (5, 5),
        7: (7, 7),
    }
    assert fresh.parts[0] is parts[0]
    assert list(fresh.parts[1]._times) == [4, 6]
    assert fresh.packed.room == [8, 0, 0]
    assert fresh.maybe is not None
    assert fresh.alone.number is None
    assert fresh.lines == [deque(), deque([6])]
    assert isinstance(fresh.last, _Place)
    assert fresh.last == (9, "z")
    assert fresh.half == 4
    assert fresh.place.of == "b"
    assert fresh.span == _Span(_Place(5, "c"), 2)
    assert fresh.span.begin.of == "c"
    assert fresh.gone == {3: {6, 8}}


def test_what_was_saved_shares_nothing_with_either_machine() -> None:
    machine, state = _full(), None
    state = save(machine)
    machine.parts[1]._times[0] = 99
    machine.waiting[0][1].append(99)
    fresh = _Machine()
    restore(fresh, state)
    fresh.parts[1]._times[0] = 77
    fresh.waiting[0][1].append(77)
    again = _Machine()
    restore(again, state)
    assert list(again.parts[1]._times) == [4, 6]
    assert again.waiting[0] == (1, [2, 3])


def test_fields_of_a_subclass_follow_those_of_its_base() -> None:
    both = _Counter.STATE + Fields("more", elements={"more": _Place})
    assert both.names == ("count", "_times", "more")
    assert both.elements == {"more": _Place}


def test_two_fields_that_would_be_saved_by_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="fields late, _late: two of them are saved by one name"):
        Fields("late", "_late")


class _Override(_Counter):
    """Packs itself, though its base declares fields."""

    def snapshot(self) -> int:
        return self.count * 2

    def restore(self, state: int) -> None:
        self.count = state // 2


def test_a_subclass_may_pack_itself() -> None:
    one = _Override()
    one.count = 4
    assert save(one) == 8
    again = _Override()
    restore(again, 8)
    assert again.count == 4


def test_machines_that_are_not_those_that_were_saved_are_refused() -> None:
    class _Two:
        STATE = Fields("parts")

        def __init__(self, parts: int) -> None:
            self.parts = [_Counter() for _ in range(parts)]

    with pytest.raises(ValueError, match="2 machines were saved, and 3 others are there"):
        restore(_Two(3), save(_Two(2)))

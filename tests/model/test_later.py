"""State that is saved in steps, while its objects change, are replaced and are renumbered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model.later import LaterOfMany
from slackwater.runtime.operators.ground.arrays import ChangingArray
from slackwater.runtime.operators.ground.of_keys import OfKeys


@dataclass
class Counter:
    code: int
    n: int
    cut: object | None = None
    is_gone: bool = False


class SavedCounters(LaterOfMany[Counter]):
    def __init__(self, every: Sequence[Counter]) -> None:
        super().__init__(every)
        self.plain: list[tuple[int, int]] = []

    def add(self, subjects: Sequence[Counter]) -> None:
        for one in subjects:
            if one.n < 0:
                raise OperatorError(f"counter {one.code} cannot be saved")
            self.plain.append((one.code, one.n))


def fresh(keys: int) -> OfKeys[Counter]:
    return OfKeys([Counter(code, 0) for code in range(keys)])


ACTS = ["change", "replace", "save", "forget", "renumber"]
acts = st.lists(
    st.tuples(
        st.sampled_from(["change", "replace", "save", "forget", "renumber"]), st.integers(0, 9)
    )
)


@given(acts, acts)
def test_objects_are_saved_as_they_were_at_the_cut(
    before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    counters, later = fresh(7), None
    for phase in (before, after):
        for act, number in phase:
            counters = _acted(counters, later, act, number)
        if later is None:
            expected = sorted((one.code, one.n) for one in counters.values())
            later = SavedCounters(counters.order)
    assert later is not None
    assert sorted(later.finish()) == expected


def _acted(
    counters: OfKeys[Counter], later: SavedCounters | None, act: str, number: int
) -> OfKeys[Counter]:
    code, one = number, counters.get(number)
    if act == "save" and later is not None and not later.is_done:
        later.step(1 + number % 3)
    if act == "renumber":
        if later is not None:
            later.before_all()
        for new, own in enumerate(reversed(counters.values())):
            own.code = new
        return OfKeys(counters.values())
    if act == "forget":
        return OfKeys([own for own in counters.values() if own.code != code])
    if one is not None and later is not None and act in {"change", "replace"}:
        later.before([one])
    if act == "replace" or one is None:
        counters.add(begun := Counter(code, 100))
        if later is not None:
            later.began(begun)
    elif act == "change":
        one.n += 1
    return counters


def test_time_is_counted_in_which_keys_were_saved_before_their_step() -> None:
    counters, times = fresh(5), iter(range(0, 100, 7))
    later = SavedCounters(counters.order)
    later.cpu_ns = lambda: next(times)
    later.step(2)
    assert later.early_ns == 0
    later.before([counters[0], counters[3], counters[4], counters[3]])
    assert later.early_ns == 7
    later.finish()
    later.before([counters[1]])
    assert later.early_ns == 7, "all are saved: nothing is to be done"


def test_time_is_counted_in_which_values_were_kept_before_they_changed() -> None:
    values, times = ChangingArray(np.int64), iter(range(0, 100, 7))
    values.resize(5)
    later = values.snapshot_later()
    later.cpu_ns = lambda: next(times)
    values.change(np.add, np.array([1, 3]), 1)
    values.change(np.add, np.array([1]), 1)
    assert later.early_ns == 14
    assert np.concatenate(later.finish()).tolist() == [0] * 5


def test_values_of_several_pieces_are_saved_as_they_were_at_the_cut() -> None:
    rng, values = np.random.default_rng(1), ChangingArray(np.int64)
    values.resize(600_000)
    values.change(np.add, np.arange(600_000), np.arange(600_000))
    later = values.snapshot_later()
    while not later.is_done:
        later.step(128)
        if rng.random() < 0.3:
            values.change(np.add, rng.integers(0, 600_000, 10_000), 1)
    assert max(map(len, later.plain)) * 8 < 4 << 20, "no page of 2 MB is asked for"
    again = ChangingArray(np.int64)
    again.restore(later.plain)
    assert (again.values == np.arange(600_000)).all()


def test_object_that_cannot_be_saved_fails_the_checkpoint_and_not_its_owner() -> None:
    counters = fresh(3)
    counters[1].n = -1
    later = SavedCounters(counters.order)
    later.before([counters[1]])
    counters[1].n = 5
    with pytest.raises(OperatorError, match="counter 1 cannot be saved"):
        later.finish()


def test_replaced_objects_do_not_pile_up() -> None:
    counters = fresh(1)
    for n in range(5_000):
        counters.add(Counter(0, n))
    assert len(counters.order) < 1_100


changes = st.lists(
    st.one_of(
        st.lists(st.integers(0, 599), min_size=1, max_size=40),
        st.integers(601, 1_000),
        st.sampled_from(["save", "keep"]),
    )
)


@given(changes)
def test_array_is_saved_as_it_was_at_the_cut(of: list[Any]) -> None:
    values = ChangingArray(np.int64)
    values.append(np.arange(600))
    later = values.snapshot_later()
    for change in of:
        match change:
            case "save" if not later.is_done:
                later.step(1)
            case "keep":
                values.keep(np.arange(600))
            case list():
                places = np.array(change)
                values.change(np.add, places, 1 + places)
            case int() if change > len(values):
                values.resize(change)
    assert np.concatenate(later.finish()).tolist() == list(range(600))

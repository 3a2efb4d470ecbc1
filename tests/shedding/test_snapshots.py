"""Shedding goes on from a snapshot as if nothing had been."""

from __future__ import annotations

import pickle
from collections import deque
from random import Random
from typing import Any

import numpy as np
import pytest

from benchmarks.espice.rivals import baseline_shedding, random_shedding
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.shedding.machine import Shedding
from slackwater.runtime.shedding.overload import Load
from slackwater.runtime.shedding.settings import Model, Overload, SheddingSettings
from slackwater.runtime.shedding.wrapper.words import espice
from tests.shedding.worlds import pairs_of, windows_of
from tests.support.shedders import Featured

ASKED: dict[str, SheddingSettings] = {
    "espice": espice("1s", seed=9, first=20, every=30, explore=0.1),
    "at least, f given": espice("1s", f=0.5, first=20, cutting="at least", scale="type"),
    "featured": Featured(Overload(1_000_000_000), Model(first=20, every=30)),
    "contest": espice("1s", feature="whatever", first=20, every=30),
    "baseline": baseline_shedding("1s", first=20, every=30),
    "random": random_shedding("1s", seed=3),
}


def a_while(one: Shedding, draw: Random, *, start: int, steps: int) -> list[Any]:
    """Learn, observe an overload and drop; return all that came of it."""
    said: list[Any] = []
    for step in range(start, start + steps):
        finished = windows_of(draw, windows=17, sizes=(5, 30))
        one.learn(finished)
        load = Load(step * 100_000_000, 130, 100, 100_000_000, 0.0, queued=60 * step)
        said.append(one.observe(load))
        dropped = one.shedder.drop(**pairs_of(finished))
        one.count_pairs(len(dropped), int(dropped.sum()), 0)
        said.append(dropped.tolist())
    return [*said, one.counts]


@pytest.mark.parametrize("name", sorted(ASKED))
@pytest.mark.parametrize("steps", [0, 1, 7, 20])
def test_what_is_restored_is_the_same_and_goes_on_alike(name: str, steps: int) -> None:
    one, other = Shedding(ASKED[name], {0: 1, 1: 2}), Shedding(ASKED[name], {0: 1, 1: 2})
    draw = Random(5)  # noqa: S311
    a_while(one, draw, start=0, steps=steps)
    state = pickle.loads(pickle.dumps(to_plain(save(one))))  # noqa: S301
    restore(other, from_plain(state))
    assert_alike(one, other, "shedding")
    seed = draw.random()
    found = [a_while(x, Random(seed), start=steps, steps=12) for x in (one, other)]  # noqa: S311
    assert found[0] == found[1]
    assert_alike(one, other, "shedding")


def test_a_snapshot_is_not_changed_by_what_comes_after() -> None:
    one = Shedding(ASKED["featured"], {})
    draw = Random(5)  # noqa: S311
    a_while(one, draw, start=0, steps=5)
    state = save(one)
    before = pickle.dumps(to_plain(state))
    a_while(one, draw, start=5, steps=9)
    assert pickle.dumps(to_plain(state)) == before


def test_a_snapshot_may_be_restored_over_another_state() -> None:
    one, other = Shedding(ASKED["espice"], {}), Shedding(ASKED["espice"], {})
    a_while(one, Random(5), start=0, steps=3)  # noqa: S311
    a_while(other, Random(6), start=0, steps=9)  # noqa: S311
    restore(other, save(one))
    assert_alike(one, other, "shedding")


def assert_alike(one: Any, other: Any, where: str) -> None:
    """Hold all attributes of two objects against each other, down to numbers."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        assert np.array_equal(one, other), where
    elif isinstance(one, list | tuple | deque):
        assert len(one) == len(other), where
        for n, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_alike(a, b, f"{where}[{n}]")
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_alike(one[key], other[key], f"{where}[{key!r}]")
    elif type(one).__module__.startswith(("slackwater.runtime", "benchmarks")):
        assert_alike(vars(one), vars(other), where)
    else:
        assert one == other, where

"""A machine that is put away between two inputs, and taken out again as a new one."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Any, TypeVar

from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from tests.support.states import canonical, differences

_M = TypeVar("_M")


def renewed(old: _M, make: Callable[[], _M]) -> _M:
    """Return a new machine that goes on where the old one is; its state has been bytes."""
    plain = to_plain(save(old))
    canonical(plain)  # nothing but plain values
    new = make()
    restore(new, from_plain(pickle.loads(pickle.dumps(plain))))  # noqa: S301 - our own bytes
    return new


def outcomes(
    make: Callable[[], _M],
    inputs: Sequence[Callable[[_M], Any]],
    *,
    restarts: Collection[int] = (),
    looks: Collection[int] = (),
) -> list[Any]:
    """Return what comes of each input, and the last state, in a form that `==` compares.

    Args:
        make: a new machine.
        inputs: each gives the machine something, and returns what came of it.
        restarts: before which of them it is put away and taken out again.
        looks: before which a renewed one is compared with it, attribute by attribute.
    """
    machine, found = make(), []
    for at, give in enumerate(inputs):
        if at in looks:
            assert differences(machine, renewed(machine, make)) == [], f"before input {at}"
        if at in restarts:
            machine = renewed(machine, make)
        found.append(canonical(to_plain(give(machine))))
    return [*found, canonical(to_plain(save(machine)))]


def some(chance: Random, count: int, *, of: int) -> frozenset[int]:
    """Draw at most so many of the numbers below `of`."""
    return frozenset(chance.randrange(of) for _ in range(min(count, of)))


def check_restored_anywhere(
    make: Callable[[], _M],
    inputs: Sequence[Callable[[_M], Any]],
    chance: Random,
    *,
    restarts: int | None = None,
    looks: int = 4,
    who: str = "",
) -> None:
    """Check that a machine does the same whether or not it is restored between any two inputs.

    Args:
        make: a new machine.
        inputs: see `outcomes`.
        chance: draws where.
        restarts: how many; None: between all of them.
        looks: how often its attributes are compared.
        who: what to say if it does not.
    """
    count = len(inputs)
    where = range(count) if restarts is None else some(chance, restarts, of=count)
    whole = outcomes(make, inputs)
    broken = outcomes(make, inputs, restarts=where, looks=some(chance, looks, of=count))
    for at, (one, other) in enumerate(zip(broken, whole, strict=True)):
        assert one == other, f"{who}: input {at} of {count}, restored before {sorted(where)}"

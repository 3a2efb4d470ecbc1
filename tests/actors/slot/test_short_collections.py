"""Collections look at new objects, and at all when many were set aside; garbage is found."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from slackwater.actors.slot.short_collections import short_collections

LEAST = 20_000


class Ring:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_survived_is_not_looked_at_again() -> None:
    with short_collections(LEAST):
        kept = [[n] for n in range(LEAST // 2)]
        gc.collect()
        assert gc.get_freeze_count() > LEAST // 2
        assert len(gc.get_objects(generation=2)) < LEAST // 2
    assert len(kept) == LEAST // 2


def test_garbage_among_what_was_set_aside_goes_when_as_much_came() -> None:
    with short_collections(LEAST):
        ring = Ring()
        gone = weakref.ref(ring)
        gc.collect()  # set aside while it is in use
        del ring
        gc.collect()
        assert gone() is not None
        kept = [[n] for n in range(LEAST + 1)]
        gc.collect()
        gc.collect()  # of all
        assert gone() is None
    assert len(kept) == LEAST + 1


def test_new_garbage_goes_at_once_and_python_is_as_before() -> None:
    before = list(gc.callbacks)
    with short_collections(LEAST):
        gone = weakref.ref(Ring())
        gc.collect()
        assert gone() is None
    assert gc.callbacks == before

"""Chance for a property: one draw for all that is decided by it, and none for each decision."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st


class Seeded(Random):
    """Says its seed where a failed property is shown."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._seed = seed

    def __repr__(self) -> str:
        return f"Seeded({self._seed})"


@st.composite
def _seeded(draw: st.DrawFn) -> Seeded:
    return Seeded(draw(st.integers(0, 2**32)))


# Not with `map`: Hypothesis takes all that is mapped for alike, and tries, in about half of the
# examples, one's choices as those of another.
chance = _seeded()

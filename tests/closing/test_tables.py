"""Many types are asked in one step: as each would answer by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.closing.histograms import Histograms
from slackwater.runtime.closing.tables import Tables

VALUES = st.lists(st.integers(0, 30), min_size=1, max_size=12)
TICK = 3


def known(gaps: list[int], delays: list[int], at_most: int | None) -> Histograms:
    gaps_ns, delays_ns = (np.array(one, dtype=np.int64) * TICK for one in (gaps, delays))
    return Histograms.of(gaps_ns, delays_ns, tick_ns=TICK, at_most_ns=at_most)


@given(
    st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4),
    st.sampled_from([None, 0, 12]),
    st.sampled_from([0.01, 0.1, 0.5]),
    st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 120), st.integers(-20, 250)), min_size=1),
)
def test_tables_answer_as_that_of_each_line_does(
    lines: list[tuple[list[int], list[int]]],
    at_most: int | None,
    bound: float,
    asked: list[tuple[int, int, int]],
) -> None:
    each = [known(gaps, delays, at_most) for gaps, delays in lines]
    tables, alone = Tables(each), [Tables([one]) for one in each]
    which, alpha, beta = (np.array(column) for column in zip(*asked, strict=True))
    which %= len(each)
    chances = tables.chance(which, alpha, beta)
    found = np.stack(tables.ranges(tables.released(bound), which, alpha))
    for at, one in enumerate(which.tolist()):
        here, own = slice(at, at + 1), alone[one]
        assert chances[at] == own.chance(np.array([0]), alpha[here], beta[here])[0]
        expected = np.stack(own.ranges(own.released(bound), np.array([0]), alpha[here]))
        assert found[1:, found[0] == at].tolist() == expected[1:].tolist()
    edges = [one.edges(one.released(bound)) for one in alone]
    assert tables.edges(tables.released(bound)) == sum(edges)

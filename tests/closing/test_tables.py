"""Many types are asked in one step: as each would answer by itself."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from runtime.closing.histograms import Histograms, PolyLine
from runtime.closing.tables import Tables

VALUES = st.lists(st.integers(0, 30), min_size=1, max_size=12)
TICK = 3


def known(gaps: list[int], delays: list[int], at_most: int | None) -> Histograms:
    gaps_ns, delays_ns = (np.array(one, dtype=np.int64) * TICK for one in (gaps, delays))
    return Histograms(gaps_ns, delays_ns, tick_ns=TICK, at_most_ns=at_most)


@given(
    st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4),
    st.sampled_from([None, 0, 12]),
    st.sampled_from([0.01, 0.1, 0.5]),
    st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 120), st.integers(-20, 250)), min_size=1),
)
def test_tables_answer_as_each_histogram_does(
    lines: list[tuple[list[int], list[int]]],
    at_most: int | None,
    bound: float,
    asked: list[tuple[int, int, int]],
) -> None:
    each = [known(gaps, delays, at_most) for gaps, delays in lines]
    tables = Tables.of(each)
    assert tables is not None
    which, alpha, beta = (np.array(column) for column in zip(*asked, strict=True))
    which %= len(each)
    poly_lines = tables.poly_lines(bound)
    chances = tables.chance(which, alpha, beta)
    least = tables.least_beta_ns(poly_lines, which, alpha)
    for at, one in enumerate(which.tolist()):
        here = slice(at, at + 1)
        classes = each[one].classes(alpha[here])
        assert chances[at] == each[one]._chances(classes, beta[here])[0]
        assert least[at] == PolyLine(each[one], bound).least_beta_ns(alpha[here])[0]


@given(VALUES, VALUES, st.sampled_from([0.01, 0.1, 0.5]))
def test_a_poly_line_read_off_a_table_has_its_corners(
    gaps: list[int], delays: list[int], bound: float
) -> None:
    one = known(gaps, delays, None)
    tables = Tables([one, one])
    line = PolyLine(one, bound)
    least = line.least_beta_ns(np.append(one.low_ns, 2**40)).tolist()
    corners = sum(here != before for before, here in pairwise(least))
    assert tables.corners(tables.poly_lines(bound)) == 2 * corners

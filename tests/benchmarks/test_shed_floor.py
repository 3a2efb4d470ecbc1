"""The floor of shedding: stretches looked at whole, and nothing between them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.patterns.floor import floor_of, longest_wait_s, recall_at

WINDOW_S = 4.0
EVENLY = np.full(600, 1.5)
"""Each second has one and a half seconds of work."""


def matches(duration_s: float) -> set[tuple[int, str]]:
    """Return a match that begins in each tenth of a second, and its events."""
    starts = (np.arange(6_000) * 1e8).astype(int).tolist()
    return {(at, json.dumps([["a", at], ["b", at + round(duration_s * 1e9)]])) for at in starts}


def test_a_stretch_loses_the_matches_that_its_end_cuts() -> None:
    found = recall_at(matches(4.0), share=0.5, from_s=0.0, length_s=40.0)
    assert found == pytest.approx(0.5 * (1 - 4.0 / 40.0), abs=0.02)


def test_a_stretch_fills_the_queue_and_the_gap_drains_it() -> None:
    # 20 s at 1.5 leave 10 s of work, and a second's work comes at once.
    assert longest_wait_s(EVENLY, 0.5, 0.0, 20.0) == pytest.approx(11.0, abs=0.6)


@pytest.mark.parametrize("bound_s", [5.0, 11.0, 25.0])
def test_the_floor_keeps_the_bound_and_looks_at_what_can_be_done(bound_s: float) -> None:
    floor = floor_of(matches(2.0), EVENLY, from_s=0.0, window_s=WINDOW_S, bound_s=bound_s)
    assert longest_wait_s(EVENLY, floor.share, 0.0, floor.windows * WINDOW_S) <= bound_s
    assert 0.5 <= floor.share <= 1 / 1.5
    assert floor.windows * WINDOW_S * 0.5 <= bound_s
    assert floor.recall == pytest.approx(floor.share * (1 - 2.0 / (floor.windows * 4)), abs=0.02)


def test_there_is_no_floor_where_one_stretch_breaks_the_bound() -> None:
    assert floor_of(matches(2.0), EVENLY * 9, from_s=0.0, window_s=WINDOW_S, bound_s=1.0).share == 0

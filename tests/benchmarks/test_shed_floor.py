"""The floor of shedding: stretches looked at whole, and nothing between them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.patterns.floor import (
    PHASES,
    floor_of,
    floor_of_phase,
    longest_wait_s,
    mean_recall_at,
    spans_of,
)

WINDOW_S = 4.0
EVENLY = np.full(600, 1.5)
"""Each second has one and a half seconds of work."""


def matches(duration_s: float) -> set[tuple[int, str]]:
    """Return a match that begins in each tenth of a second, and its events."""
    starts = (np.arange(6_000) * 1e8).astype(int).tolist()
    return {(at, json.dumps([["a", at], ["b", at + round(duration_s * 1e9)]])) for at in starts}


def test_a_stretch_loses_the_matches_that_its_end_cuts() -> None:
    found = mean_recall_at(matches(4.0), share=0.5, from_s=0.0, length_s=40.0)
    assert found == pytest.approx(0.5 * (1 - 4.0 / 40.0), abs=0.02)


def test_a_stretch_fills_the_queue_and_the_gap_drains_it() -> None:
    # 20 s at 1.5 leave 10 s of work, and a second's work comes at once.
    waits_s = [longest_wait_s(EVENLY, 0.5, 0.0, 20.0, phase) for phase in range(PHASES)]
    assert max(waits_s) == pytest.approx(11.0, abs=0.6)


@pytest.mark.parametrize("phase", range(PHASES))
@pytest.mark.parametrize("bound_s", [5.0, 11.0, 25.0])
def test_the_floor_keeps_the_bound_and_looks_at_what_can_be_done(
    bound_s: float, phase: int
) -> None:
    spans = spans_of(matches(2.0), 0.0)
    floor = floor_of_phase(spans, EVENLY, phase, from_s=0.0, window_s=WINDOW_S, bound_s=bound_s)
    assert longest_wait_s(EVENLY, floor.share, 0.0, floor.windows * WINDOW_S, phase) <= bound_s
    assert 0.5 <= floor.share <= 1 / 1.5
    assert floor.windows * WINDOW_S * 0.5 <= bound_s
    assert floor.recall == pytest.approx(floor.share * (1 - 2.0 / (floor.windows * 4)), abs=0.02)


def test_a_phase_that_breaks_the_bound_is_left_to_the_others() -> None:
    """A burst of 8 s each 40: only stretches that miss it keep the bound."""
    bursts = np.where(np.arange(600) % 40 < 8, 6.0, 0.2)
    floor = floor_of(matches(2.0), bursts, from_s=0.0, window_s=WINDOW_S, bound_s=8.0)
    assert floor.recall > 0.2


def test_there_is_no_floor_where_one_stretch_breaks_the_bound() -> None:
    assert floor_of(matches(2.0), EVENLY * 9, from_s=0.0, window_s=WINDOW_S, bound_s=1.0).share == 0

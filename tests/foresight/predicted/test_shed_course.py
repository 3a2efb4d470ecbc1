"""What a rule of shedding makes of a known load, in a fluid of events."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.runtime.foresight.predicted.shed_course import ShedCourse, shed_course
from slackwater.runtime.shedding.settings import Model, Overload
from slackwater.runtime.shedding.wrapper.words import Espice

WIDTH_S = 0.1
OVERLOAD = Overload(latency_ns=10**9, f=0.8, low=0.5)
SHED = Espice(OVERLOAD)


def course(
    load: float,
    *,
    others: float = 0.0,
    saved: float = 1.0,
    elsewhere_s: float = 0.0,
    shed: Espice = SHED,
    seconds: int = 60,
) -> ShedCourse:
    d = round(seconds / WIDTH_S)
    return shed_course(
        np.full(d, load * WIDTH_S),
        others_s=np.full(d, others * WIDTH_S),
        saved=saved,
        elsewhere_s=np.full(d, elsewhere_s),
        shed=shed,
        capacity=1.0,
        width_s=WIDTH_S,
    )


def test_below_what_can_be_done_nothing_is_dropped() -> None:
    found = course(0.9)
    assert (found.from_s, found.dropped, found.worst_s) == (None, 0.0, 0.0)


@pytest.mark.parametrize("load", [1.25, 2.0, 4.0])
def test_what_is_dropped_is_what_is_too_much_and_latency_stays_where_it_began(load: float) -> None:
    found = course(load)
    assert found.from_s == pytest.approx(0.8 / (load - 1), abs=WIDTH_S)
    assert found.dropped_since == pytest.approx(1 - 1 / load, abs=0.01)
    assert 0.8 <= found.worst_s <= 0.9


def test_work_that_dropping_does_not_save_makes_for_more_dropped() -> None:
    assert course(1.25, saved=0.5).dropped_since == pytest.approx(0.4, abs=0.01)


def test_where_dropping_all_is_not_enough_latency_grows() -> None:
    found = course(2.0, saved=0.25)
    assert found.dropped_since == pytest.approx(1.0)
    assert found.worst_s == pytest.approx(30, rel=0.05)


def test_where_dropping_saves_nothing_all_is_dropped_and_latency_grows_all_the_same() -> None:
    found = course(1.5, saved=0.0)
    assert found.dropped_since == pytest.approx(1.0)
    assert found.worst_s == pytest.approx(30, rel=0.05)


def test_windows_that_are_never_touched_leave_work_to_be_done() -> None:
    shed = Espice(OVERLOAD, Model(explore=0.1), drops="pairs")
    assert course(20.0, shed=shed).worst_s > 10


def test_what_others_take_of_the_node_is_to_be_made_room_for_too() -> None:
    """0.5 of it are left for 0.8: 0.3 of these have to go."""
    found = course(0.8, others=0.5)
    assert found.dropped_since == pytest.approx(0.3 / 0.8, abs=0.01)
    assert found.worst_s < 0.9


def test_time_that_is_lost_elsewhere_leaves_less_of_the_bound() -> None:
    sooner, later = course(1.25, elsewhere_s=0.6), course(1.25)
    assert sooner.from_s is not None
    assert later.from_s is not None
    assert sooner.from_s < later.from_s / 2
    assert sooner.worst_s <= 0.9


def test_where_all_of_the_bound_is_lost_elsewhere_its_own_queue_alone_is_kept() -> None:
    assert course(0.9, elsewhere_s=1.5).from_s is None
    found = course(1.25, elsewhere_s=1.5)
    assert found.dropped_since == pytest.approx(0.2, abs=0.01)
    assert found.worst_s == pytest.approx(1.5 + 0.8, abs=0.1)


def test_a_burst_within_a_subinterval_is_met_as_it_comes() -> None:
    """Six times as much as can be done, for a second: looks are closer than subintervals."""
    own_s = np.zeros(100)
    own_s[10:20] = 6 * WIDTH_S
    found = shed_course(
        own_s,
        others_s=np.zeros(100),
        saved=1.0,
        elsewhere_s=np.zeros(100),
        shed=SHED,
        capacity=1.0,
        width_s=WIDTH_S,
    )
    assert 0.8 <= found.worst_s <= 0.9
    assert found.share[25:].sum() == 0

"""When rows are passed over, and what is lost by it."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.operators.pattern.passing import PassingOver
from runtime.operators.pattern.what_if import Judged


def decided(one: PassingOver, **told: Any) -> bool:
    known = {"is_overloaded": True, "share": 0.3, "saved_share": 0.5, "judged": Judged()}
    one.decide(**(known | told))
    return one.is_on


def judged(lost: int, matches: int) -> Judged:
    return Judged(matches, matches, lost, 0).standing_for(1)


def test_rows_are_passed_over_if_all_would_have_to_go_until_it_is_no_longer_too_much() -> None:
    one = PassingOver()
    assert not decided(one)
    assert decided(one, share=1.0)
    assert decided(one, share=0.2)  # till the level has fallen
    assert not decided(one, is_overloaded=False)
    assert not decided(one)


@pytest.mark.parametrize(("lost", "is_on"), [(10, False), (25, False), (40, True)])
def test_dropping_events_that_loses_more_gives_way_to_it_for_good(lost: int, is_on: bool) -> None:
    """0.3 of the events save 0.15 of the work, as does a sixth of the rows: 17 of a hundred.

    25 may be chance.
    """
    one = PassingOver()
    assert decided(one, judged=judged(lost, 100)) is is_on
    assert not decided(one, is_overloaded=False)
    assert decided(one) is is_on


def test_of_few_matches_nothing_is_concluded() -> None:
    assert not decided(PassingOver(), judged=judged(19, 19))


def test_windows_that_never_opened_are_as_many_as_would_have() -> None:
    one = PassingOver()
    assert one.lost_share == 0.0
    for _ in range(10):
        one.opened()
    one.look_at(1_000)
    one.pass_over(500, windows=3)
    assert one.lost_share == pytest.approx((3 + 5) / 15)
    again = PassingOver()
    again.restore(one.snapshot())
    assert again.snapshot() == one.snapshot()

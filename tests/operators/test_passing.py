"""When rows are passed over: stretches, and where all events would have to go."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from slackwater.runtime.shedding.overload import Amount, PassingOver, Verdict
from slackwater.runtime.shedding.settings import Drops


class Told(NamedTuple):
    """A verdict of the detector, as far as it matters here."""

    share: float = 0.0
    is_overloaded: bool = True
    is_above: bool = False
    is_drained: bool = False


def told(one: Told) -> Verdict:
    return Verdict(
        amount=Amount(one.share) if one.share > 0 else None,
        is_overloaded=one.is_overloaded,
        is_curable=True,
        rate=0.0,
        throughput=0.0,
        q_max=0.0,
        level_ns=0.0,
        x=0.0,
        is_above=one.is_above,
        is_drained=one.is_drained,
    )


def passed_over(drops: Drops, verdicts: list[Told]) -> list[bool]:
    one, found = PassingOver(drops), []
    for verdict in verdicts:
        one.decide(told(verdict))
        found.append(one.is_on)
    return found


def test_a_stretch_begins_above_the_level_and_ends_after_the_read_that_drains_the_queue() -> None:
    above, below, drained = Told(is_above=True), Told(), Told(is_drained=True)
    verdicts = [below, above, below, drained, below, below, above]
    assert passed_over("stretches", verdicts) == [False, True, True, True, False, False, True]


def test_once_nothing_waits_a_row_is_looked_at_whatever_it_is_taken_to_cost() -> None:
    """After one event of five bounds its cost was never measured again: 999 events were shed."""
    verdicts = [Told(is_above=True, is_drained=True)] * 6
    assert passed_over("stretches", verdicts) == [True, False, True, False, True, False]


@pytest.mark.parametrize(
    ("drops", "expected"), [("events", [False, True, True, False, False]), ("pairs", [False] * 5)]
)
def test_of_single_events_rows_are_passed_over_only_where_all_would_have_to_go(
    drops: Drops, expected: list[bool]
) -> None:
    verdicts = [Told(0.3), Told(1.0), Told(0.2), Told(is_overloaded=False), Told(0.3)]
    assert passed_over(drops, verdicts) == expected

"""New names of steps, as users give them: what is refused, and what they mean."""

from __future__ import annotations

import pytest

from slackwater.runtime.errors import SettingError
from slackwater.runtime.recovery.renamed import check_renamed, names_then
from tests.support.any_flow import any_flow

STEPS = ("trips", "jams", "out")


@pytest.mark.parametrize(
    ("renamed", "problem"),
    [
        ({"rides": "trip"}, r"has no step 'trip'; the nearest is 'trips'"),
        ({"jams": "trips"}, r"still has a step 'jams'; omit it"),
        ({"rides": "trips", "rows": "trips"}, r"gives two steps one name \(trips, trips\)"),
    ],
)
def test_names_that_cannot_be_are_refused(renamed: dict[str, str], problem: str) -> None:
    with pytest.raises(SettingError, match=problem):
        check_renamed(renamed, STEPS)


def test_names_of_former_steps_pass() -> None:
    check_renamed({"rides": "trips", "queue": "jams"}, STEPS)


def test_parts_and_channels_have_the_names_of_their_steps() -> None:
    plan = next(
        plan
        for plan in map(any_flow, range(99))
        if any(stage.name == "pairs.1" for stage in plan.stages)
    )
    then = names_then(plan, {"both": "pairs", "buses": "s1"})
    assert then["pairs.1"] == "both.1"
    assert then["s1"] == "buses"
    into = {c.name: then[c.name] for c in plan.channels if c.target == "pairs.1"}
    assert into
    assert all(
        old == now.replace("s1", "buses").replace("pairs", "both") for now, old in into.items()
    )
    assert all(now not in then or "s1" in now or "pairs" in now for now in plan.slots)

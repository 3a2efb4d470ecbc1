"""New names of steps, as users give them: what is refused."""

from __future__ import annotations

import pytest

from slackwater.runtime.errors import SettingError
from slackwater.runtime.recovery.renamed import check_renamed

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

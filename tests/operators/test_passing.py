"""When rows are passed over: stretches, and where all events would have to go."""

from __future__ import annotations

import pytest

from runtime.operators.pattern.passing import PassingOver
from runtime.shedding.settings import Drops


@pytest.mark.parametrize(
    ("drops", "expected"),
    [
        ("stretches", [True, True, True, False, True]),
        ("events", [False, True, True, False, False]),
        ("pairs", [False] * 5),
    ],
)
def test_rows_are_passed_over_until_it_is_no_longer_too_much(
    drops: Drops, expected: list[bool]
) -> None:
    """Of single events only where all would have to go."""
    one, found = PassingOver(drops), []
    for is_overloaded, share in [(True, 0.3), (True, 1.0), (True, 0.2), (False, 0.0), (True, 0.3)]:
        one.decide(is_overloaded=is_overloaded, share=share)
        found.append(one.is_on)
    assert found == expected

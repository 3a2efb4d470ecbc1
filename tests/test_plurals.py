"""A count and its noun agree."""

from __future__ import annotations

import pytest

from slackwater.runtime.plurals import agreeing, count_of, times


@pytest.mark.parametrize(
    ("count", "noun", "says"),
    [
        (0, "row", "0 rows"),
        (1, "node", "1 node"),
        (1_200, "row", "1,200 rows"),
        (1.5, "core", "1.5 cores"),
        (1.0, "core", "1 core"),
        (2, "match", "2 matches"),
        (2, "query", "2 queries"),
        (2, "key", "2 keys"),
        (3, "unfinished file", "3 unfinished files"),
    ],
)
def test_a_noun_follows_its_count(count: float, noun: str, says: str) -> None:
    assert count_of(count, noun) == says


def test_verbs_and_times_follow_their_count() -> None:
    assert [agreeing(n, "is", "are") for n in (0, 1, 2)] == ["are", "is", "are"]
    assert [times(n) for n in (1, 2, 1_000)] == ["once", "2 times", "1,000 times"]

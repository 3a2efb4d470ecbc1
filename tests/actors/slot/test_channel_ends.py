"""When nothing is under way on channels, by what their two ends say of themselves."""

from __future__ import annotations

from actors.slot.channel_ends import Passed, is_drained


def test_a_channel_is_drained_when_both_ends_have_seen_the_same() -> None:
    assert is_drained([{"a→b": Passed(7, 64)}, {"a→b": Passed(7, 64)}])
    assert not is_drained([{"a→b": Passed(7, 64)}, {"a→b": Passed(6, 64)}])  # a message
    assert not is_drained([{"a→b": Passed(7, 64)}, {"a→b": Passed(7, 128)}])  # a grant


def test_a_channel_within_a_slot_has_no_ends_and_nothing_is_under_way_on_it() -> None:
    assert is_drained([{}, {}])

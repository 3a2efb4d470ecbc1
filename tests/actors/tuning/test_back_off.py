from __future__ import annotations

from slackwater.actors.tuning.supervisor import LIVED_S, BackOff


def test_who_dies_early_is_waited_for_longer_each_time_and_at_last_for_half_a_minute() -> None:
    back_off = BackOff()
    waits = [back_off.wait_s(lived_s=LIVED_S - 1) for _ in range(8)]
    assert waits == [0, 1, 2, 4, 8, 16, 30, 30]
    for _ in range(2_000):  # an hour of it overflows nothing
        assert back_off.wait_s(lived_s=0) == 30


def test_who_has_lived_for_long_is_replaced_at_once_and_counting_begins_anew() -> None:
    back_off = BackOff()
    lives = [0, 0, LIVED_S, 0, 0]
    assert [back_off.wait_s(lived_s=lived_s) for lived_s in lives] == [0, 1, 0, 1, 2]

"""A wall clock that is set: told from one that is read a moment too late."""

from __future__ import annotations

from slackwater.runtime.measure.report import ClockReport
from slackwater.runtime.measure.wall_clock import STEP_NS, WallClock, clock_notes

HOUR = 3_600 * 10**9


def test_a_step_is_noticed_once_and_counted_from_there() -> None:
    wall = WallClock(7)
    for ahead_ns in (7, 7 + STEP_NS, 7 - STEP_NS):
        wall.look(ahead_ns)
    assert (wall.steps, wall.stepped_ns) == (0, 0)
    for _ in range(3):
        wall.look(7 - HOUR)
    assert (wall.steps, wall.stepped_ns) == (1, -HOUR)
    wall.look(7)
    assert (wall.steps, wall.stepped_ns) == (2, 0)


def test_small_steps_add_up_and_a_slow_look_is_none() -> None:
    wall = WallClock(0)
    wall.look(5 * STEP_NS, error_ns=5 * STEP_NS)
    assert wall.steps == 0
    for tenth in range(1, 12):
        wall.look(tenth * STEP_NS // 10)
    assert (wall.steps, wall.stepped_ns) == (1, 11 * STEP_NS // 10)


def test_nodes_of_one_host_are_told_of_in_one_sentence() -> None:
    clocks = [
        ClockReport("node-1", steps=1, stepped_ns=-HOUR + 3),
        ClockReport("node-2", steps=1, stepped_ns=-HOUR),
        ClockReport("node-3"),
        ClockReport("node-4", steps=2, stepped_ns=HOUR),
    ]
    together, other = clock_notes(clocks)
    assert together.startswith(
        "the clock of node-1, node-2 was set back by 60.0 min while the job ran"
    )
    assert other.startswith("the clock of node-4 was set forward by 60.0 min in 2 steps")
    assert clock_notes([clocks[2]]) == []

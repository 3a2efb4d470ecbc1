"""Cost of a cut beside its steps: the time in which slices saved what they changed."""

from __future__ import annotations

from slackwater.runtime.model.later import Later
from slackwater.runtime.schedule.cut import Cut


class Part(Later):
    """Part of a state that is whole after two steps; a slice saves in between."""

    plain = None
    steps = 0

    def step(self, most: int) -> None:
        del most
        self.steps += 1
        self.is_done = self.steps == 2

    def before(self) -> None:
        began_ns = self.cpu_ns()
        self.early_ns += self.cpu_ns() - began_ns


def test_parts_measure_slices_by_the_clock_of_their_host() -> None:
    times = iter([100, 130, 200, 205])
    first, second = Part(), Part()
    cut = Cut(1, {}, (), [first, second], lambda: next(times))
    cut.step(1)
    first.before()
    second.before()
    while cut.is_saving:
        cut.step(1)
    assert cut.early_ns == 35

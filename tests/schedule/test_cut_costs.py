"""Costs of a cut: keys that a slice saved count by the time of those that steps saved."""

from __future__ import annotations

from slackwater.runtime.model.later import Later
from slackwater.runtime.schedule.cut import Cut


class Counted(Later):
    """Part of a state that is whole after one step."""

    def __init__(self, in_steps: int, passed: int, early: int) -> None:
        self.plain = None
        self._counts = in_steps, passed, early

    def step(self, most: int) -> None:
        del most
        self.keys_in_steps, self.keys_passed, self.keys_early = self._counts
        self.is_done = True


def early_share(in_steps: int, passed: int, early: int) -> float:
    cut = Cut(1, {}, (), [Counted(in_steps, passed, early)])
    cut.step(1)
    return cut.early_share


def test_each_key_that_a_slice_saved_counts_as_one_of_the_steps() -> None:
    assert early_share(in_steps=100, passed=0, early=300) == 3


def test_steps_that_saved_few_keys_do_not_make_those_of_slices_dear() -> None:
    assert early_share(in_steps=1_000, passed=99_000, early=99_000) < 14
    assert early_share(in_steps=0, passed=99_000, early=99_000) == 16


def test_state_without_keys_of_slices_costs_what_its_steps_do() -> None:
    assert early_share(in_steps=0, passed=0, early=0) == 0

"""Estimates of rows in no order know which moments count, and the longest wait."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.runtime.closing.candidates import Scope
from slackwater.runtime.closing.disorder import Needs, candidates_in_disorder
from slackwater.runtime.closing.fitting import FitSettings, NeedsFitting
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model.state import restore, save


def test_moments_of_which_rows_are_still_to_come_are_not_counted() -> None:
    """A row in two hundred takes 400 ticks: that of 2,500 has not come by 2,700."""
    happened = np.arange(0, 3_000, 5)
    came = happened + np.where(happened % 1_000 == 500, 400, 5)
    come = came <= 2_700
    known = Needs.of(happened[come], came[come])
    # Up to 2,300 a slow row was still to come at the moments from 500 to 900, and from 1,500.
    assert known.chance(np.array([10]))[0] == pytest.approx(800 / 2_300, abs=0.01)


def test_the_longest_wait_is_that_of_the_last_sixteen_fits() -> None:
    rows = 64
    fitting = NeedsFitting(FitSettings(rows, rows, sliding=False, together=False, tick_ns=1))
    longest = []
    for fit in range(20):
        happened = np.arange(rows) + rows * fit
        took = np.where(happened == 2 * rows + 7, 900, 3)  # one row, of the third fit
        sample = (np.zeros(rows, dtype=np.int64), happened, happened + took)
        fitting.add(sample, 0, rows)
        assert fitting.fit_if_due(spent=False)
        assert fitting.needs is not None
        longest.append(fitting.needs.longest_ns)
        if fit == 10:
            state, fitting = save(fitting), NeedsFitting(fitting._settings)
            restore(fitting, state)
    assert longest == [3] * 2 + [900] * 16 + [3] * 2


@pytest.mark.parametrize(("at_most", "longest"), [(None, 45), (42, 42)])
def test_a_delay_longer_than_all_known_counts_from_its_own_row_on(
    at_most: int | None, longest: int
) -> None:
    settings = FitSettings(64, 8, sliding=False, together=False, tick_ns=1, at_most_ns=at_most)
    fitting = NeedsFitting(settings)
    happened = np.arange(16)
    took = np.where(happened == 11, 40, 3)
    sample = (np.zeros(16, dtype=np.int64), happened, happened + took)
    assert fitting.next_due(sample, 0, marked=False) == 2  # T/20
    fitting.add(sample, 0, 8)
    assert fitting.fit_if_due(spent=False)
    assert fitting.needs is not None
    assert fitting.needs.longest_ns == 3
    assert fitting.next_due(sample, 8, marked=False) == 11
    fitting.add(sample, 8, 12)
    assert fitting.needs.longest_ns == longest  # an eighth more, if no bound is shorter
    assert fitting.next_due(sample, 12, marked=False) == 15  # the next fit: no row is longer
    fitting.add(sample, 12, 16)
    assert fitting.fit_if_due(spent=False)
    assert fitting.needs.longest_ns == 40


@pytest.mark.parametrize(("end", "complete"), [(160, []), (200, [3, 4, 5, 6, 7, 8])])
def test_no_window_is_complete_before_the_longest_wait_could_have_been_seen(
    end: int, complete: list[int]
) -> None:
    """The first window, 0, ends at 10. With a wait of 100, none is complete before 160."""
    needs = Needs(np.array([5, 100]), longest_ns=100, unforeseen=0.01)
    scope = Scope(0, 3, 3, 20, 1, 10)
    found = candidates_in_disorder(needs, 0.5, WindowEnds(10, 10), scope, now_ns=0, end_ns=end)
    assert (found.sure_open - 1).tolist() == complete
    assert found.sure_at_ns.tolist() == [max(160, 10 * one + 110) for one in complete]


def test_needs_of_a_pause_do_not_outweigh_all_others() -> None:
    rng = np.random.default_rng(1)
    happened = np.arange(2_000) * 40
    happened[1_000:] += 3 * 86_400_000  # three days
    came = happened + rng.integers(100, 900, 2_000)
    needs = Needs.of(happened, came, size_ns=1_000).needs_ns
    steady = Needs.of(np.arange(2_000) * 40, np.arange(2_000) * 40 + came - happened).needs_ns
    assert abs(np.median(needs) - np.median(steady)) < 100

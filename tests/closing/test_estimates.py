"""Estimates of rows in no order know which moments count, and the longest wait."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.runtime.closing.disorder import Needs
from slackwater.runtime.closing.fitting import FitSettings, NeedsFitting
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


def test_needs_of_a_pause_do_not_outweigh_all_others() -> None:
    rng = np.random.default_rng(1)
    happened = np.arange(2_000) * 40
    happened[1_000:] += 3 * 86_400_000  # three days
    came = happened + rng.integers(100, 900, 2_000)
    needs = Needs.of(happened, came, size_ns=1_000).needs_ns
    steady = Needs.of(np.arange(2_000) * 40, np.arange(2_000) * 40 + came - happened).needs_ns
    assert abs(np.median(needs) - np.median(steady)) < 100

"""The oracle's choice, and what is known of rows in no order: which moments, which longest wait."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.closing import WindowEnds
from slackwater.runtime.closing.disorder import Needs
from slackwater.runtime.closing.fitting import FitSettings, NeedsFitting
from slackwater.runtime.closing.oracle import oracle
from tests.closing.streams import columns, drawn
from tests.support.chance import chance
from tests.support.examples import a_third


@a_third
@given(miss=st.sampled_from([0.0, 0.1, 0.3, 0.5]), draw=chance)
def test_no_other_choice_of_as_many_windows_gives_the_oracle_less_slack(
    miss: float, draw: Random
) -> None:
    rows = drawn(draw, rows=draw.randint(6, 14), shuffled=draw.random() < 0.5)
    _, event_time_ns, arrival_ns = columns(rows)
    slide = draw.choice([5, 10, 20])
    windows = WindowEnds(slide * draw.choice([1, 2]), slide)
    found = oracle(windows, event_time_ns, arrival_ns, miss=miss, tick_ns=1)
    begins_ns = found.end_ns - windows.size_ns
    least, kept = [], []  # when each may close at the earliest, and so that it misses nothing
    for begin, end in zip(begins_ns.tolist(), found.end_ns.tolist(), strict=True):
        came = arrival_ns[(event_time_ns >= begin) & (event_time_ns < end)]
        least.append(end - windows.slide_ns + 1)
        kept.append(max(int(came.max(initial=least[-1])), least[-1]))
    most = int(miss * len(kept) + 1e-9)
    sums = [
        sum(least[n] if n in given_up else kept[n] for n in range(len(kept)))
        for given_up in map(set, combinations(range(len(kept)), min(most, len(kept))))
    ]
    assert found.closed_at_ns.sum() == min(sums)
    assert found.missed.sum() <= most
    assert (found.closed_at_ns >= np.where(found.missed, least, kept)).all()


def test_moments_of_which_rows_are_still_to_come_are_not_counted() -> None:
    """A row in two hundred takes 400 ticks: that of 2,500 has not come by 2,700."""
    happened = np.arange(0, 3_000, 5)
    came = happened + np.where(happened % 1_000 == 500, 400, 5)
    come = came <= 2_700
    known = Needs(happened[come], came[come])
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
            state, fitting = fitting.snapshot(), NeedsFitting(fitting._settings)
            fitting.restore(state)
    assert longest == [3] * 2 + [900] * 16 + [3] * 2

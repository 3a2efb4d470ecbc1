"""The oracle of `probslack-*` gives up the windows that it gains most by."""

from __future__ import annotations

from itertools import combinations
from math import comb
from random import Random

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.probslack.oracle import oracle
from slackwater.runtime.closing.windows import WindowEnds
from tests.closing.streams import columns, drawn
from tests.support.chance import chance
from tests.support.examples import a_third

MOST_CHOICES = 20_000
"""Of windows to give up: all are tried, a second for a million."""


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
    assume(comb(len(kept), most) <= MOST_CHOICES)
    sums = [
        sum(least[n] if n in given_up else kept[n] for n in range(len(kept)))
        for given_up in map(set, combinations(range(len(kept)), min(most, len(kept))))
    ]
    assert found.closed_at_ns.sum() == min(sums)
    assert found.missed.sum() <= most
    assert (found.closed_at_ns >= np.where(found.missed, least, kept)).all()

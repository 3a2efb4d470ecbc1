"""How many pairs a join is said to compare: as many as there are, counted one by one."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.runtime.foresight.curves import JoinCurve


@pytest.mark.parametrize(
    ("within_s", "is_bursty"), [(0.03, False), (0.1, False), (0.5, True), (0.5, False), (2.0, True)]
)
@pytest.mark.parametrize("shares", [(0.8, 0.2), (0.5, 0.5), (0.1, 0.9)])
def test_pairs_are_as_many_as_there_are(
    within_s: float, shares: tuple[float, float], is_bursty: bool
) -> None:
    """Also where the sides are unlike: whichever row comes last finds the others."""
    rng = np.random.default_rng(3)
    width_s, seconds, rows = 0.1, 20.0, 4_000
    times = [np.sort(rng.random(round(rows * share)) * seconds) for share in shares]
    if is_bursty:  # one side comes in the first half of each second, the other in the second
        times = [at // 1 + (at % 1) / 2 + side / 2 for side, at in enumerate(times)]
    edges = np.arange(0.0, seconds + width_s / 2, width_s)
    arrivals = np.stack([np.histogram(at, edges)[0] for at in times]).astype(float)
    curve = JoinCurve(within_s=within_s, row_s=(0.0, 0.0), pair_s=0.0, result=1.0)
    near = [np.searchsorted(times[1], times[0] + by) for by in (-within_s, within_s)]
    counted = float((near[1] - near[0]).sum())
    assert curve.pairs(arrivals, width_s).sum() == pytest.approx(counted, rel=0.04)
    assert curve.events_out(arrivals, width_s).sum() == pytest.approx(counted, rel=0.04)

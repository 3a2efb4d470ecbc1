"""The chance that is stated is the chance: beside draws, and beside what windows missed."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.probslack.calibration import Told, deciles, told_and_missed
from benchmarks.probslack.streams import DELAYS, GAPS, MS, Draw, geometric, stream_of
from slackwater.runtime.closing.histograms import Histograms
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.tables import Tables
from slackwater.runtime.closing.windows import WindowEnds

DRAWS: dict[str, tuple[Draw, Draw]] = {
    "geometric": (geometric(20), geometric(3)),
    "BB": (GAPS["B"], DELAYS["B"]),
    "ZZ": (GAPS["Z"], DELAYS["Z"]),
}
EVENTS = 20_000


@pytest.mark.parametrize("conditional", [True, False], ids=["given nothing came", "as printed"])
@pytest.mark.parametrize("name", DRAWS)
def test_the_chance_of_a_miss_is_the_share_of_draws_that_miss(name: str, conditional: bool) -> None:
    """Monte Carlo: of the next events that have not come by β, those that are in the window."""
    gap, delay = DRAWS[name]
    rng = np.random.default_rng(7)
    histograms = Histograms.of(
        gap(rng, EVENTS) * MS, delay(rng, EVENTS) * MS, tick_ns=MS, conditional=conditional
    )
    tables = Tables([histograms])
    g, d = gap(rng, 10 * EVENTS), delay(rng, 10 * EVENTS)
    for alpha in (5, 18, 21, 25, 60):
        for beta in (2, 8, 19, 24, 28, 36):
            missing, coming = (g < alpha) & (g + d > beta), g + d > beta
            among = coming.sum() if conditional else len(g)
            if among < 2_000:  # too few draws to tell
                continue
            drawn = missing.sum() / among
            told = tables.chance(np.array([0]), np.array([alpha * MS]), np.array([beta * MS]))
            few = min(among, EVENTS * coming.mean()) if conditional else EVENTS
            assert told[0] == pytest.approx(drawn, abs=5 * (0.25 / few) ** 0.5), (alpha, beta)


@pytest.mark.parametrize("guard", ["strict", "none"])
@pytest.mark.parametrize("name", DRAWS)
def test_windows_miss_as_often_as_was_stated_by_decile(name: str, guard: str) -> None:
    windows, parts = WindowEnds(10_000 * MS, 20 * MS), []
    for seed in (1, 2):
        stream = stream_of([(*DRAWS[name], EVENTS)], seed)
        run = ProbSlack(0.2, guard=guard, fit_rows=4_000, first_rows=2_000).begin(windows)
        run.observe(stream.types, stream.event_time_ns, stream.arrival_ns)
        closed = run.closings()
        one = told_and_missed(
            closed.end_ns, closed.closed_at_ns, closed.chance_missing, stream, windows
        )
        assert run.counts().missed == one.missed.sum()  # what states 0 misses nothing
        assert run.counts().missed_share <= 0.2
        parts.append(one)
    told = Told(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    for stated, measured, count in deciles(told):
        assert count > 300
        assert abs(stated - measured) < 0.02 + 3 * (stated * (1 - stated) / count) ** 0.5

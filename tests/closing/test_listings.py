"""The machine beside the paper's simulator, tick by tick: the same windows close at the same."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.closing.budget import GUARDS, GuardWord
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.windows import WindowEnds
from tests.closing.literal_probslack import simulate
from tests.closing.streams import drawn, ran
from tests.support.chance import chance


@given(guard=st.sampled_from(GUARDS), conditional=st.booleans(), draw=chance)
def test_it_closes_what_listings_1_to_5_close(
    guard: GuardWord, conditional: bool, draw: Random
) -> None:
    """Under P_miss as printed, and given that nothing has come."""
    rows = drawn(draw, types=draw.randint(1, 3), rows=draw.randint(20, 150))
    slide = draw.randint(1, 30)
    size, share = draw.randint(2_000, 2_100), draw.choice([0.05, 0.1, 0.3, 0.6])
    fit_rows, until = draw.choice([20, 40, 60]), rows[-1][2] + 1
    expected = simulate(
        rows,
        size=size,
        slide=slide,
        share=share,
        fit_rows=fit_rows,
        until=until,
        guard=guard,
        cached=draw.random() < 0.3,
        conditional=conditional,
    )
    rows_of_fit = {"fit_rows": fit_rows, "first_rows": fit_rows}
    policy = ProbSlack(share, guard=guard, conditional=conditional, tick_ns=1, **rows_of_fit)
    found = ran(policy, WindowEnds(size, slide), rows, until=until, cut=draw)
    assert [((end - size) // slide, at) for end, at, _ in found.closed] == expected.closed
    assert found.counts.missed == len(expected.missed)
    if guard == "strict":
        assert max(expected.share_at, default=0.0) <= share + 1e-9

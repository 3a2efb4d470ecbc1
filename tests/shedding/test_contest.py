"""Two models side by side: which is used, and that it does not depend on how windows came."""

from __future__ import annotations

import pickle
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.shedding.contest import SHARES, ContestShedder
from slackwater.runtime.shedding.espice import EspiceShedder
from slackwater.runtime.shedding.evidence import BLOCK, Evidence
from slackwater.runtime.shedding.featured import FeaturedShedder
from slackwater.runtime.shedding.settings import Model
from slackwater.runtime.shedding.shedder import Amount
from slackwater.runtime.shedding.windows import FinishedWindows, Places
from tests.shedding.test_snapshots import assert_alike
from tests.shedding.worlds import pairs_of, places_of
from tests.support.examples import a_third

MODEL = Model(first=32, every=64, explore=0.0)
EIGHTY = Amount(0.8)


def world(draw: Random, *, windows: int, tells: bool, values: int = 6) -> FinishedWindows:
    """Return windows in which an event of type 0 matters if its feature is 3: the one that is told,
    or another that nobody sees."""
    size, types = 20, 3
    events = places_of(
        [(w, draw.randrange(types), at) for w in range(windows) for at in range(size)]
    )
    features = np.array([draw.randrange(values) for _ in range(len(events))])
    seen = features if tells else np.array([draw.randrange(values) for _ in range(len(events))])
    hits = np.flatnonzero((events.types == 0) & (features == 3))
    at = Places(events.windows[hits], events.types[hits], events.positions[hits], seen[hits])
    return FinishedWindows(
        np.full(windows, size),
        at,
        np.arange(len(hits)),
        np.ones(windows, np.bool_),
        Places(events.windows, events.types, events.positions, seen),
    )


def contest(finished: FinishedWindows, amount: Amount = EIGHTY) -> ContestShedder:
    one = ContestShedder(MODEL, seed=1)
    one.learn(finished)
    one.aim(amount)
    return one


def test_a_feature_that_tells_what_matters_is_used_and_drops_as_the_richer_model_does() -> None:
    draw = Random(3)  # noqa: S311
    learnt, new = (world(draw, windows=n, tells=True) for n in (600, 100))
    one, richer = contest(learnt), FeaturedShedder(MODEL, seed=1)
    richer.learn(learnt)
    richer.aim(EIGHTY)
    assert one.ranked_by == "utility (type, place, feature)"
    pairs = pairs_of(new) | {"features": new.events.features}
    assert np.array_equal(one.drop(**pairs), richer.drop(**pairs))
    types, features = new.events.types, new.events.features
    assert np.array_equal(one.bounds(types, features), richer.bounds(types, features))
    assert one.learning.lost_shares is not None
    without, with_it = one.learning.lost_shares
    assert without > 0.3
    assert with_it < 0.1


@pytest.mark.parametrize("seed", range(5))
def test_a_feature_that_tells_nothing_is_not_used_at_any_amount(seed: int) -> None:
    draw = Random(seed)  # noqa: S311
    learnt, new = (world(draw, windows=n, tells=False) for n in (600, 100))
    plain = EspiceShedder(MODEL, seed=1)
    plain.learn(learnt)
    pairs = pairs_of(new) | {"features": new.events.features}
    for share in SHARES:
        one = contest(learnt, Amount(share))
        plain.aim(Amount(share))
        assert one.ranked_by == "utility (type, place)"
        assert np.array_equal(one.drop(**pairs), plain.drop(**pairs))


def test_where_dropping_costs_nothing_without_it_a_feature_is_not_used() -> None:
    """Two of three types are in no match: up to two thirds can go without a look at the feature."""
    learnt = world(Random(3), windows=600, tells=True)  # noqa: S311
    assert contest(learnt, Amount(0.3)).ranked_by == "utility (type, place)"
    assert contest(learnt, Amount(0.8)).ranked_by == "utility (type, place, feature)"


def test_a_feature_that_no_longer_tells_what_matters_is_given_up() -> None:
    draw = Random(4)  # noqa: S311
    one = contest(world(draw, windows=600, tells=True))
    assert one.ranked_by == "utility (type, place, feature)"
    for _ in range(60):
        one.learn(world(draw, windows=64, tells=False))
        if one.ranked_by == "utility (type, place)":
            return
    pytest.fail("it is still used, after 3,840 windows of noise")


def test_bounds_are_the_least_and_the_highest_chance_of_all_places() -> None:
    learnt = world(Random(5), windows=600, tells=True)  # noqa: S311
    for share in (0.3, 0.7, 0.8, 0.9, 1.0):
        one = contest(learnt, Amount(share))
        types, features = (each.ravel() for each in np.indices((5, 8)))
        chances = np.stack(
            [one.chances(types, np.full(40, at), sizes=20, features=features) for at in range(20)]
        )
        low, high = one.bounds(types, features)
        assert np.array_equal(low, chances.min(axis=0))
        assert np.array_equal(high, chances.max(axis=0))


@a_third
@given(cuts=st.lists(st.integers(0, 400), max_size=6), tells=st.booleans())
def test_it_does_not_depend_on_how_windows_came(cuts: list[int], tells: bool) -> None:
    learnt = world(Random(6), windows=400, tells=tells)  # noqa: S311
    whole, parts = contest(learnt), ContestShedder(MODEL, seed=1)
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), 400], strict=True):
        if begin < end:
            parts.learn(learnt.part(begin, end))
    parts.aim(EIGHTY)
    assert parts.ranked_by == whole.ranked_by
    assert parts.learning.lost_shares == whole.learning.lost_shares
    places = np.arange(20)
    chances = [
        one.chances(np.zeros(20, np.int64), places, sizes=20, features=np.full(20, 3))
        for one in (whole, parts)
    ]
    assert np.array_equal(*chances)


def test_nothing_is_believed_before_seven_blocks_however_large_the_difference() -> None:
    evidence = Evidence(1)
    lost = np.array([[[1.0]], [[0.0]]])
    for block in range(1, 8):
        assert not evidence.is_better.any()
        for _ in range(BLOCK):
            evidence.add(lost, 1)
        assert evidence.is_better.all() == (block == 7)


def test_models_that_lose_alike_are_seldom_told_apart() -> None:
    """Of a hundred blocks each, in the mean of runs: who is used by mistake is given up again."""
    used = []
    for seed in range(60):
        draw, evidence = np.random.default_rng(seed), Evidence(1)
        for block in range(100):
            if block % 8 == 0:
                evidence.fade()
            evidence.add(draw.uniform(0.1, 1.0, (2, 1, 30)), BLOCK)
            used.append(bool(evidence.is_better[0]))
    assert np.mean(used) < 0.06


@pytest.mark.parametrize("windows", [0, 40, 300, 500])
def test_it_goes_on_from_a_snapshot_as_if_nothing_had_been(windows: int) -> None:
    draw = Random(8)  # noqa: S311
    one, other = contest(world(draw, windows=windows, tells=True)), ContestShedder(MODEL, seed=1)
    restore(other, from_plain(pickle.loads(pickle.dumps(to_plain(save(one))))))  # noqa: S301
    assert_alike(one, other, "contest")
    for tells in (True, True, False):
        more = world(draw, windows=130, tells=tells)
        pairs = pairs_of(more) | {"features": more.events.features}
        for each in (one, other):
            each.learn(more)
        assert np.array_equal(one.drop(**pairs), other.drop(**pairs))
        assert one.ranked_by == other.ranked_by
    assert_alike(one, other, "contest")

"""Retraining, the test for a change, rivals' amounts, and what matches are expected to last."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.espice.rivals import shares_by_weight
from slackwater.runtime.model.state import save
from slackwater.runtime.shedding.change import chi_square
from slackwater.runtime.shedding.espice import EspiceShedder
from slackwater.runtime.shedding.featured import FeaturedShedder, types_in_front
from slackwater.runtime.shedding.machine import RecentMatches
from slackwater.runtime.shedding.settings import Model
from slackwater.runtime.shedding.shedder import Amount
from slackwater.runtime.shedding.windows import FinishedWindows, Places
from tests.shedding.worlds import pairs_of, windows_of

EARLY = ((0, 0.1), (1, 0.5))
LATE = ((0, 0.4), (1, 0.9))


def recall(shedder: EspiceShedder, finished: FinishedWindows) -> float:
    """Return the share of matches none of whose events is dropped."""
    hits = finished.hits
    windows = hits.windows
    dropped = shedder.drop(
        hits.types,
        hits.positions,
        windows=windows,
        events=windows * 1_000 + hits.positions,
        sizes=finished.sizes[windows],
    )
    lost = np.unique(finished.matches[dropped])
    return 1.0 - len(lost) / len(np.unique(finished.matches))


def test_the_model_is_built_after_the_first_windows_and_then_after_every_so_many() -> None:
    one = EspiceShedder(Model(first=10, every=25), seed=0)
    turns = []
    for _ in range(8):
        one.learn(windows_of(Random(1), windows=10))  # noqa: S311
        turns.append(one.turns)
    assert turns == [1, 1, 1, 2, 2, 3, 3, 3]


@pytest.mark.parametrize("seed", range(12))
def test_a_stream_that_stays_the_same_is_taken_for_no_other(seed: int) -> None:
    draw = Random(seed)  # noqa: S311
    one = EspiceShedder(Model(first=64, every=64), seed=0)
    for _ in range(40):
        one.learn(windows_of(draw, windows=64, sizes=(15, 30), types=5))
    assert one.changes == 0


@pytest.mark.parametrize("seed", range(12))
def test_another_place_of_matches_is_found_within_two_turns(seed: int) -> None:
    draw = Random(seed)  # noqa: S311
    one = EspiceShedder(Model(first=64, every=64), seed=0)
    for _ in range(10):
        one.learn(windows_of(draw, windows=64, pattern=EARLY))
    for _ in range(2):
        one.learn(windows_of(draw, windows=64, pattern=LATE))
    assert one.changes == 1
    one.aim(Amount(0.5))
    assert recall(one, windows_of(draw, windows=100, pattern=LATE)) > 0.97


def test_a_slow_drift_of_types_is_found_too() -> None:
    found = 0
    for seed in range(6):
        draw = Random(seed)  # noqa: S311
        one = EspiceShedder(Model(first=128, every=128, keep=0.9), seed=0)
        for step in range(30):
            share = max(step - 9, 0) / 20  # of windows that are of the new kind
            new = round(128 * share)
            for windows, pattern in ((128 - new, EARLY), (new, LATE)):
                if windows:
                    one.learn(windows_of(draw, windows=windows, pattern=pattern))
        found += one.changes > 0
    assert found >= 5


def test_matches_that_end_altogether_are_a_change() -> None:
    draw = Random(1)  # noqa: S311
    one = EspiceShedder(Model(first=64, every=64), seed=0)
    for match in (0.8, 0.8, 0.0):
        one.learn(windows_of(draw, windows=64, match=match))
    assert one.changes == 1
    assert not one.is_trained


def test_without_detection_older_windows_are_forgotten_all_the_same() -> None:
    draw = Random(4)  # noqa: S311
    one = EspiceShedder(Model(first=64, every=64, detect=False, keep=0.5), seed=0)
    one.aim(Amount(0.5))
    late = windows_of(draw, windows=200, pattern=LATE)
    for _ in range(5):
        one.learn(windows_of(draw, windows=64, pattern=EARLY))
    before = recall(one, late)
    for _ in range(5):
        one.learn(windows_of(draw, windows=64, pattern=LATE))
    assert one.changes == 0
    assert before < 0.85
    assert recall(one, late) > 0.97


def test_chi_square_of_two_samples_of_one_stream_is_about_one() -> None:
    draw = np.random.default_rng(2)
    p = draw.dirichlet(np.ones(30))
    found = [
        chi_square(draw.multinomial(3000, p).astype(float), draw.multinomial(600, p).astype(float))
        for _ in range(200)
    ]
    assert np.mean([one[0] for one in found if one is not None]) == pytest.approx(1.0, abs=0.1)
    assert chi_square(np.zeros(3), np.ones(3)) is None


def test_the_expected_share_of_matches_is_what_comes_of_it() -> None:
    draw = Random(6)  # noqa: S311
    model = Model(first=200, explore=0.0, cells=20, detect=False)
    one, matches = EspiceShedder(model, seed=3), RecentMatches(most=4_000)
    learnt = windows_of(draw, windows=400, types=2, match=0.9)
    one.learn(learnt)
    matches.learn(learnt)
    for share in (0.3, 0.6, 0.8, 0.95):
        one.aim(Amount(share, 2))
        expected = matches.kept_share(one, explore=0.0)
        assert expected is not None
        found = recall(one, windows_of(draw, windows=2_000, types=2, match=0.9))
        assert found == pytest.approx(expected, abs=0.06)
    one.aim(None)
    assert matches.kept_share(one, explore=0.0) == 1.0


def test_only_the_newest_matches_are_remembered() -> None:
    matches = RecentMatches(most=10)
    assert matches.kept_share(EspiceShedder(Model(), seed=0), explore=0.0) is None
    matches.learn(windows_of(Random(1), windows=50, match=1.0))  # noqa: S311
    assert len(matches) == 10
    assert len(save(matches)["matches"][-1][1]) == 2


@given(
    repeated=st.lists(st.integers(0, 4), min_size=1, max_size=8),
    weights=st.lists(st.integers(0, 9), min_size=8, max_size=8),
    share=st.floats(0.0, 1.0),
)
def test_the_baselines_amounts_come_to_what_is_wanted(
    repeated: list[int], weights: list[int], share: float
) -> None:
    frequency = np.array(weights[: len(repeated)], float)
    if not frequency.sum():
        return
    frequency /= frequency.sum()
    found = shares_by_weight(frequency, np.array(repeated, float), share)
    assert ((found >= -1e-12) & (found <= 1 + 1e-12)).all()
    assert (found * frequency).sum() == pytest.approx(share, abs=1e-9)


def test_the_baseline_drops_what_the_pattern_lacks_first_then_what_it_has_too_much_of() -> None:
    frequency = np.array([0.2, 0.3, 0.1, 0.4])
    repeated = np.array([0.0, 1.0, 1.0, 2.0])
    assert shares_by_weight(frequency, repeated, 0.1).tolist() == [0.5, 0, 0, 0]
    found = shares_by_weight(frequency, repeated, 0.4)
    assert found[0] == 1.0
    assert found[1] / found[2] == pytest.approx(3.0)  # three times as often, for one repetition
    assert found[3] / found[2] == pytest.approx(2.0)


def featured(draw: Random, windows: int) -> FinishedWindows:
    """Return windows in which type 0 hits wherever it comes, if its feature is 3."""
    one = windows_of(draw, windows=windows, types=3, pattern=(), match=0.0)
    events = one.events
    features = np.array([draw.randrange(6) for _ in range(len(events))])
    hits = np.flatnonzero((events.types == 0) & (features == 3))
    return FinishedWindows(
        one.sizes,
        Places(events.windows[hits], events.types[hits], events.positions[hits], features[hits]),
        np.arange(len(hits)),
        one.sampled,
        Places(events.windows, events.types, events.positions, features),
    )


def test_a_feature_that_tells_matches_apart_spares_them_and_eSPICE_cannot() -> None:  # noqa: N802
    draw = Random(2)  # noqa: S311
    learnt, new = featured(draw, 300), featured(draw, 100)
    lost = {}
    for kind in (EspiceShedder, FeaturedShedder):
        one = kind(Model(first=300, explore=0.0), seed=1)
        one.learn(learnt)
        one.aim(Amount(0.85))
        hits = new.hits
        chances = one.loss_of(
            hits.types, hits.positions, sizes=new.sizes[hits.windows], features=hits.features
        )
        lost[kind] = chances.mean()
        dropped = one.drop(**pairs_of(new), features=new.events.features)
        assert dropped.mean() == pytest.approx(0.85, abs=0.03)
    assert lost[EspiceShedder] > 0.4
    assert lost[FeaturedShedder] < 0.02


def test_a_kind_that_was_never_seen_is_as_its_type_is() -> None:
    draw = Random(2)  # noqa: S311
    one = FeaturedShedder(Model(first=300, explore=0.0), seed=1)
    one.learn(featured(draw, 300))
    one.aim(Amount(0.8))  # all of types 1 and 2, which are in no match, and more
    lost = one.loss_of(
        np.array([0, 1, 7]), np.array([3, 3, 3]), sizes=20, features=np.array([77, 77, 77])
    )
    assert lost.tolist() == [0.0, 1.0, 0.0]


@given(
    types=st.lists(st.integers(0, 20), max_size=30),
    cut=st.integers(0, 30),
    depth=st.integers(1, 4),
)
def test_the_types_in_front_do_not_depend_on_the_cut(
    types: list[int], cut: int, depth: int
) -> None:
    stream, none = np.array(types, np.int64), np.full(depth, -1)
    whole = types_in_front(stream, none)
    first = types_in_front(stream[:cut], none)
    carried = np.concatenate([none, stream[:cut]])[-depth:]
    assert np.concatenate([first, types_in_front(stream[cut:], carried)]).tolist() == whole.tolist()
    if len(types):
        assert whole[0] == 0
    for n in range(1, len(types)):
        front = {
            int(types_in_front(np.array([0]), np.array([t]))[0])
            for t in types[max(n - depth, 0) : n]
        }
        assert whole[n] == np.bitwise_or.reduce(sorted(front))

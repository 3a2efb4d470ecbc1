"""How much is dropped, of what, and that it is the same whatever the cut into batches."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.shedding.settings import Model, Overload
from slackwater.runtime.shedding.shedder import Amount, Shedder
from tests.shedding.worlds import pairs_of, windows_of
from tests.support.chance import chance
from tests.support.examples import a_third
from tests.support.shedders import SHEDDERS

KINDS: tuple[str, ...] = ("espice", "featured", "baseline", "random")
BOUND = Overload(1_000_000_000)


def shedder(kind: str = "espice", seed: int = 5, **model: object) -> Shedder:
    settings = Model(**{"first": 8, "explore": 0.0} | model)  # type: ignore[arg-type]
    return SHEDDERS[kind](settings, seed)


@given(
    kind=st.sampled_from(KINDS),
    share=st.sampled_from([0.05, 0.2, 0.5, 0.9]),
    partitions=st.integers(1, 7),
    cells=st.sampled_from([5, 7, 16, 30, 64]),
    scale=st.sampled_from(["rank", "probability", "type"]),
    draw=chance,
)
@a_third
def test_exact_cutting_drops_the_share_in_every_partition(
    kind: str, share: float, partitions: int, cells: int, scale: str, draw: Random
) -> None:
    """Of the windows that it has learnt from, so that only the draws are chance."""
    finished = windows_of(draw, windows=160, sizes=(40, 40))
    one = shedder(kind, first=160, cells=cells, scale=scale)
    one.learn(finished)
    one.aim(Amount(share, partitions))
    pairs = pairs_of(finished)
    dropped = one.drop(**pairs)
    assert dropped.mean() == pytest.approx(share, abs=0.03)
    if kind == "espice" and cells * partitions % 40 == 0:
        part = pairs["positions"] * partitions // 40
        shares = np.bincount(part, dropped) / np.bincount(part)
        assert shares == pytest.approx(np.full(partitions, share), abs=0.08)


@given(share=st.floats(0.02, 0.98), partitions=st.integers(1, 5), draw=chance)
def test_at_least_cutting_drops_no_less(share: float, partitions: int, draw: Random) -> None:
    finished = windows_of(draw, windows=60, sizes=(30, 30))
    one = shedder(first=60, cells=30, cutting="at least", smooth=0.0)
    one.learn(finished)
    one.aim(Amount(share, partitions))
    assert one.drop(**pairs_of(finished)).mean() >= share - 1e-9


@given(kind=st.sampled_from(KINDS), draw=chance)
@a_third
def test_what_is_dropped_does_not_depend_on_how_rows_are_cut(kind: str, draw: Random) -> None:
    """Neither of those that are learnt from, nor of those that are asked for."""
    finished = windows_of(draw, windows=60, sizes=(10, 50), types=7, sample=0.5)
    whole, cut = (shedder(kind, explore=0.1, every=16) for _ in range(2))
    whole.learn(finished)
    begin = 0
    while begin < 60:
        end = min(begin + draw.randint(1, 20), 60)
        cut.learn(finished.part(begin, end))
        begin = end
    for one in (whole, cut):
        one.aim(Amount(0.3, 2))
    pairs = pairs_of(finished)
    expected = whole.drop(**pairs)
    found, begin = [], 0
    while begin < len(expected):
        end = begin + draw.randint(1, 300)
        found.append(cut.drop(**{name: one[begin:end] for name, one in pairs.items()}))
        begin = end
    assert (np.concatenate(found) == expected).all()
    order = np.array(draw.sample(range(len(expected)), len(expected)))
    mixed = whole.drop(**{name: one[order] for name, one in pairs.items()})
    assert (mixed == expected[order]).all()


def test_events_of_matches_are_spared() -> None:
    draw = Random(3)  # noqa: S311
    finished = windows_of(draw, windows=400, match=1.0)
    one = shedder(cells=20)
    one.learn(finished)
    one.aim(Amount(0.5))
    hits = finished.hits
    lost = one.loss_of(hits.types, hits.positions, sizes=20)
    assert one.is_trained
    assert lost.mean() < 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_dropped_unless_it_is_asked_for(kind: str) -> None:
    finished = windows_of(Random(1), windows=40)  # noqa: S311
    one = shedder(kind)
    one.learn(finished)
    types = np.arange(6)
    assert not one.drop(**pairs_of(finished)).any()
    assert not np.any(one.bounds(types, None))
    one.aim(Amount(0.5))
    assert one.drop(**pairs_of(finished)).any()
    one.aim(None)
    assert not one.drop(**pairs_of(finished)).any()


@pytest.mark.parametrize("match", [0.0, None])
def test_without_a_match_events_are_dropped_at_random(match: float | None) -> None:
    one = shedder(explore=0.0)
    finished = windows_of(Random(2), windows=100, match=match or 0.0)  # noqa: S311
    if match is not None:
        one.learn(finished)
    assert not one.is_trained
    one.aim(Amount(0.3, 3))
    dropped = one.drop(**pairs_of(finished))
    types = finished.events.types
    shares = np.bincount(types, dropped) / np.bincount(types)
    assert shares == pytest.approx(np.full(4, 0.3), abs=0.08)


def test_types_that_were_never_seen_go_last() -> None:
    one = shedder()
    one.learn(windows_of(Random(2), windows=50))  # noqa: S311
    one.aim(Amount(0.95))
    unseen = np.array([4, 99, 5_000_000, -1])
    assert not np.any(one.bounds(unseen, None))
    assert (one.loss_of(unseen, np.arange(4), sizes=20) == 0).all()


@given(
    kind=st.sampled_from(KINDS),
    share=st.floats(0.02, 1.0),
    partitions=st.integers(1, 4),
    draw=chance,
)
@a_third
def test_what_is_said_of_a_type_holds_for_all_its_pairs(
    kind: str, share: float, partitions: int, draw: Random
) -> None:
    finished = windows_of(draw, windows=40, sizes=(8, 60), types=9)
    one = shedder(kind, cells=16)
    one.learn(finished)
    one.aim(Amount(share, partitions))
    pairs = pairs_of(windows_of(draw, windows=30, sizes=(8, 60), types=10))
    dropped = one.drop(**pairs)
    low, high = one.bounds(pairs["types"], None)
    assert dropped[low >= 1].all()
    assert not dropped[high <= 0].any()


def test_a_window_that_is_kept_whole_loses_nothing_and_others_make_up_for_it() -> None:
    draw = Random(8)  # noqa: S311
    finished = windows_of(draw, windows=500, sizes=(40, 40))
    one = shedder("random", explore=0.25)
    one.aim(Amount(0.3))
    pairs = pairs_of(finished)
    dropped, whole = one.drop(**pairs), one.keeps_whole(pairs["windows"])
    assert whole.mean() == pytest.approx(0.25, abs=0.06)
    assert not dropped[whole].any()
    assert dropped.mean() == pytest.approx(0.3, abs=0.03)


def test_whole_windows_are_sampled_under_load_and_more_of_them_without() -> None:
    one = shedder(explore=0.1, sample=0.5)
    windows = np.arange(2_000)
    assert one.samples(windows).mean() == pytest.approx(0.5, abs=0.05)
    one.aim(Amount(0.2))
    assert (one.samples(windows) == one.keeps_whole(windows)).all()


def test_another_seed_drops_others() -> None:
    pairs = pairs_of(windows_of(Random(8), windows=50))  # noqa: S311
    found = []
    for seed in (1, 2):
        one = shedder("random", seed)
        one.aim(Amount(0.5))
        found.append(one.drop(**pairs))
    assert (found[0] != found[1]).mean() == pytest.approx(0.5, abs=0.07)


def test_an_event_goes_from_all_windows_that_drop_it_with_one_chance_or_from_none() -> None:
    """So it is work that is saved, whatever an operator shares among windows."""
    one = shedder("random")
    one.aim(Amount(0.5))
    event, window = np.repeat(np.arange(400), 2), np.tile([0, 1], 400)
    nothing = np.zeros(800, np.int64)
    dropped = one.drop(nothing, nothing, windows=window, events=event, sizes=5).reshape(-1, 2)
    assert dropped.mean() == pytest.approx(0.5, abs=0.07)
    touched = ~one.keeps_whole(np.array([0, 1]))
    assert (dropped[:, touched].all(axis=1) == dropped[:, touched].any(axis=1)).all()

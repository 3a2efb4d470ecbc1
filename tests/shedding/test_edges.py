"""What shedding does where little or nothing is known, or where nothing helps."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slackwater.runtime.shedding.machine import Shedding
from slackwater.runtime.shedding.overload import Load
from slackwater.runtime.shedding.settings import Model, Overload
from slackwater.runtime.shedding.shedder import Amount, Shedder
from slackwater.runtime.shedding.table import MOST_TYPES
from slackwater.runtime.shedding.windows import FinishedWindows
from slackwater.runtime.shedding.wrapper.words import Espice
from tests.shedding.worlds import pairs_of, places_of, windows_of
from tests.support.shedders import SHEDDERS

SECOND = 1_000_000_000
BOUND = Overload(SECOND, 0.8)
KINDS: tuple[str, ...] = ("espice", "featured", "baseline", "random")


def shedder(kind: str = "espice", **model: object) -> Shedder:
    settings = Model(**{"first": 8, "explore": 0.0} | model)  # type: ignore[arg-type]
    return SHEDDERS[kind](settings, 3)


def any_first(draw: Random, *, windows: int, types: int, count: int, size: int) -> FinishedWindows:
    """Return windows whose match is of the first so many events of the first half of types."""
    hits, events, matches = [], [], []
    for window in range(windows):
        kinds = [draw.randrange(types) for _ in range(size)]
        events += [(window, kind, at) for at, kind in enumerate(kinds)]
        found = [(window, kind, at) for at, kind in enumerate(kinds) if kind < types // 2][:count]
        hits += found
        matches += [window] * len(found)
    return FinishedWindows(
        np.full(windows, size),
        places_of(hits),
        np.array(matches),
        np.ones(windows, np.bool_),
        places_of(events),
    )


def matches_lost(one: Shedder, finished: FinishedWindows) -> float:
    """Return the share of matches that lose an event."""
    hits = finished.hits
    dropped = one.drop(
        hits.types,
        hits.positions,
        windows=hits.windows,
        events=hits.windows * 1_000 + hits.positions,
        sizes=finished.sizes[hits.windows],
    )
    return len(np.unique(finished.matches[dropped])) / len(np.unique(finished.matches))


@pytest.mark.parametrize("cells", [4, 16, 64, 200])
def test_few_matches_of_many_types_teach_which_places_matter(cells: int) -> None:
    """Sixty windows, 80 types, 200 positions: hardly any type was seen at any place."""
    draw = Random(4)  # noqa: S311
    one = shedder(first=60, cells=cells)
    one.learn(any_first(draw, windows=60, types=80, count=10, size=200))
    one.aim(Amount(0.3))
    new = any_first(draw, windows=200, types=80, count=10, size=200)
    assert matches_lost(one, new) < 0.03


@given(
    share=st.sampled_from([0.1, 0.3, 0.6]),
    types=st.sampled_from([5, 40]),
    windows=st.sampled_from([32, 100]),
    seed=st.integers(0, 1_000),
)
def test_as_much_is_dropped_of_windows_to_come_as_is_wanted(
    share: float, types: int, windows: int, seed: int
) -> None:
    """Also where the model has been built from few windows, a quarter of which were looked at.

    Of one such window (seed 132) 21 points too few are dropped: the detector then asks for more.
    """
    draw = Random(seed)  # noqa: S311
    one = shedder(first=windows)
    seen = windows_of(draw, windows=windows, sizes=(50, 50), types=types, sample=0.25)
    assume(seen.sampled.sum() >= 4)
    one.learn(seen)
    one.aim(Amount(share))
    new = windows_of(draw, windows=100, sizes=(50, 50), types=types)
    # Of 40 types ten events each were seen, of 2,560 cells one in six: a tenth less is dropped.
    assert one.drop(**pairs_of(new)).mean() == pytest.approx(share, abs=0.04 + 0.12 * share)


@pytest.mark.parametrize("kind", KINDS)
def test_with_nothing_learnt_events_are_dropped_by_chance(kind: str) -> None:
    one = shedder(kind)
    one.learn(windows_of(Random(1), windows=0))  # noqa: S311
    one.aim(Amount(0.3))
    new = windows_of(Random(2), windows=200)  # noqa: S311
    assert one.drop(**pairs_of(new)).mean() == pytest.approx(0.3, abs=0.03)
    assert (one.bounds(np.arange(4), None)[0] < 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_may_go_goes_if_all_has_to(kind: str) -> None:
    draw = Random(5)  # noqa: S311
    for explore, kept in ((0.0, 0.0), (0.25, 0.25)):
        one = shedder(kind, explore=explore)
        one.learn(windows_of(draw, windows=40))
        one.aim(Amount(1.0))
        new = windows_of(draw, windows=400)
        dropped = one.drop(**pairs_of(new))
        assert 1 - dropped.mean() == pytest.approx(kept, abs=0.08)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", [-1, 77, MOST_TYPES, 10**12])
def test_types_of_any_code_are_looked_up(kind: str, code: int) -> None:
    draw = Random(6)  # noqa: S311
    one = shedder(kind)
    finished = windows_of(draw, windows=40)
    one.learn(finished)
    one.aim(Amount(0.2))
    types = np.full(100, code)
    chances = one.chances(types, np.arange(100), sizes=100, features=None)
    assert ((chances >= 0) & (chances <= 1)).all()
    if kind == "espice":
        assert not chances.any(), "nothing says that it is worthless"
    low, high = one.bounds(types, None)
    assert ((low <= chances) & (chances <= high)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_code_that_is_too_high_to_be_told_apart_is_learnt_from_without_harm(kind: str) -> None:
    events = places_of([(w, MOST_TYPES + 5 if at else 1, at) for w in range(20) for at in range(6)])
    hits = places_of([(w, MOST_TYPES + 5, 3) for w in range(20)])
    one = shedder(kind)
    one.learn(FinishedWindows(np.full(20, 6), hits, np.arange(20), np.ones(20, np.bool_), events))
    one.aim(Amount(0.1))
    chances = one.chances(np.array([1, MOST_TYPES + 5]), np.array([0, 3]), sizes=6, features=None)
    assert np.isfinite(chances).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_that_outgrows_its_prediction_is_dropped_of_as_its_end_is(kind: str) -> None:
    draw = Random(7)  # noqa: S311
    one = shedder(kind)
    one.learn(windows_of(draw, windows=60, sizes=(20, 20)))
    one.aim(Amount(0.4, 3))
    positions = np.array([19, 20, 500, 10**9])
    chances = one.chances(np.full(4, 2), positions, sizes=20, features=None)
    assert len(set(chances.tolist())) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_windows_of_one_event_are_windows(kind: str) -> None:
    draw = Random(8)  # noqa: S311
    one = shedder(kind)
    finished = windows_of(draw, windows=60, sizes=(1, 1), pattern=((0, 0.0),))
    one.learn(finished)
    one.aim(Amount(0.15, 4))
    dropped = one.drop(**pairs_of(finished))
    assert 0.0 < dropped.mean() < 0.4


def drop(one: Shedding, finished: FinishedWindows) -> int:
    """Drop pairs; return how many, which are counted."""
    gone = one.shedder.drop(**pairs_of(finished))
    dropped = int(gone.sum())
    one.count_pairs(len(gone), dropped, 0)
    return dropped


def load(now_s: float, *, arrived: int, busy_share: float = 1.0, queued: int = 0) -> Load:
    """Return what was seen in a twentieth of a second: events of a millisecond each."""
    return Load(round(now_s * SECOND), arrived, 50, round(SECOND * busy_share / 20), queued=queued)


def test_an_operator_without_load_drops_nothing_and_counts_nothing() -> None:
    one = Shedding(Espice(BOUND, Model(first=8), drops="pairs"), {})
    finished = windows_of(Random(9), windows=40)  # noqa: S311
    one.learn(finished)
    for step in range(200):
        verdict = one.observe(load(step / 20, arrived=45))
        assert verdict.amount is None
        assert not drop(one, finished)
    report = one.counts
    assert (report.aimed, report.dropped, report.starts, report.uncured) == (0, 0, 0, 0)
    assert report.is_trained
    assert one.kept_share == 1.0


def test_the_report_tells_what_was_dropped_how_often_it_began_and_what_it_costs() -> None:
    one = Shedding(Espice(BOUND, Model(first=8, explore=0.0)), {})
    finished = windows_of(Random(9), windows=80)  # noqa: S311
    one.learn(finished)
    queued, dropped, share, starts = 0.0, 0, 0.0, []
    for step in range(600):
        arrived = 70 if step % 300 < 100 else 20
        queued = max(queued + arrived * (1 - share) - 50, 0.0)
        share = 0.0
        verdict = one.observe(load(step / 20, arrived=arrived, queued=int(queued)))
        starts.append(verdict.is_overloaded)
        if verdict.amount is not None:
            share = verdict.amount.share
            dropped += drop(one, finished)
            assert 0.0 <= (one.kept_share or 0.0) <= 1.0
    report = one.counts
    assert report.starts == 2
    assert not starts[-1]
    assert report.dropped == dropped > 0
    assert report.dropped == pytest.approx(report.aimed, rel=0.25)


def test_what_cannot_be_cured_is_counted_and_told() -> None:
    one = Shedding(Espice(BOUND, Model(first=8), drops="pairs"), {})
    late = Load(SECOND, 45, 45, SECOND // 25, age_ns=5 * SECOND, queued=10)
    one.observe(Load(0, 45, 45, SECOND // 25, queued=0))
    verdict = one.observe(late)
    assert not verdict.is_curable
    assert "elsewhere" in verdict.reason
    assert one.counts.uncured == 1


def test_nothing_is_said_before_anything_has_been_worked_on() -> None:
    one = Shedding(Espice(BOUND), {})
    verdict = one.observe(Load(0, 1_000, 0, 0, queued=1_000))
    assert verdict.amount is None
    assert verdict.is_curable
    assert verdict.throughput == 0


def test_f_is_found_from_the_model_once_there_is_one_and_given_ones_stay() -> None:
    for f in (None, 0.6):
        one = Shedding(Espice(Overload(SECOND, f), Model(first=8), drops="pairs"), {})
        one.observe(load(0.05, arrived=40))
        assert one.detector.f == (f or 0.8)
        one.learn(windows_of(Random(9), windows=40))  # noqa: S311
        one.observe(load(0.1, arrived=40))
        one.observe(load(0.15, arrived=40))
        assert one.detector.f == (f or pytest.approx(0.95))

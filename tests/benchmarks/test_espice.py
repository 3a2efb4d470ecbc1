"""The matcher of `espice-*` finds what the pattern's meaning says; a trial counts what is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.espice import q1, q2
from benchmarks.espice.contest import Found
from benchmarks.espice.cost import reads_of
from benchmarks.espice.options import REPEATED, opened_by_leading, quotes, split, steps_3, steps_4
from benchmarks.espice.per_window import (
    NOTHING,
    Alternative,
    AnyAfter,
    Match,
    Matcher,
    Selection,
    Steps,
    first_match,
)
from benchmarks.espice.shedders import BASELINE, ESPICE, MAKERS
from benchmarks.espice.soccer import STRIKERS, positions, windows_1
from benchmarks.espice.streams import Pace, Query, Windows
from benchmarks.espice.trial import Group, Part, Runs, Surge, Tally, compared, judged
from benchmarks.espice.windows import one_of_each

A, B, C = 0, 1, 2


def found(
    matcher: Callable[[], Matcher], labels: Sequence[int], heads: Sequence[bool]
) -> Match | None:
    """Return the match of a window of these events."""
    return first_match([Alternative(matcher, labels, heads)], range(len(labels)))


def obvious(
    fits: Callable[[Match], bool], length: int, events: int, selection: Selection
) -> Match | None:
    """Return the match that ends earliest, of all choices of so many events; of several by rule."""
    matches = [choice for choice in combinations(range(events), length) if fits(choice)]
    if not matches:
        return None
    end = min(match[-1] for match in matches)
    at_end = [match for match in matches if match[-1] == end]
    if selection == "first":
        return min(at_end)
    return max(at_end, key=lambda match: match[::-1])


windows_of_events = st.lists(st.tuples(st.integers(-1, 3), st.booleans()), max_size=11)
selections = st.sampled_from(["first", "last"])


@given(windows_of_events, st.integers(1, 4), selections)
def test_any_after_a_head_is_what_looking_at_all_choices_finds(
    events: list[tuple[int, bool]], count: int, selection: Selection
) -> None:
    labels, heads = [one for one, _ in events], [head for _, head in events]

    def fits(choice: Match) -> bool:
        members = [labels[number] for number in choice[1:]]
        return heads[choice[0]] and NOTHING not in members and len({*members}) == len(members)

    expected = obvious(fits, count + 1, len(events), selection)
    assert found(partial(AnyAfter, count, selection), labels, heads) == expected


@given(
    st.lists(st.integers(-1, 2), max_size=12),
    st.lists(st.integers(0, 2), min_size=1, max_size=5),
    selections,
)
def test_steps_with_repetition_are_what_looking_at_all_choices_finds(
    events: list[int], steps: list[int], selection: Selection
) -> None:
    labels = [label if label in steps else NOTHING for label in events]

    def fits(choice: Match) -> bool:
        return [labels[number] for number in choice] == steps

    expected = obvious(fits, len(steps), len(events), selection)
    assert found(partial(Steps, steps, selection), labels, [False] * len(events)) == expected


@pytest.mark.parametrize(
    ("selection", "whole", "without_a1"), [("first", (0, 2), (1, 2)), ("last", (1, 2), (1, 2))]
)
def test_example_of_espice_section_2_with_one_match_of_a_window(
    selection: Selection, whole: Match, without_a1: Match
) -> None:
    """[espice] §2, §2.1: A1 A2 B3 B4; first leaves (A1, B3), and without A1 (A2, B3)."""
    labels = [A, A, B, B]
    alternative = Alternative(partial(Steps, (A, B), selection), labels, [False] * 4)
    assert first_match([alternative], range(4)) == whole
    assert first_match([alternative], [1, 2, 3]) == without_a1


def test_of_two_alternatives_the_one_that_ends_earlier_is_the_match() -> None:
    rising = Alternative(partial(Steps, (A, B), "first"), [A, -1, -1, B], [False] * 4)
    falling = Alternative(partial(Steps, (A, B), "first"), [-1, A, B, -1], [False] * 4)
    assert first_match([rising, falling], range(4)) == (1, 2)


def a_then_b(types: Sequence[int], selection: Selection = "first") -> Query:
    """Return `seq(A, B)` over a stream of these types."""
    labels = [one if one in (A, B) else NOTHING for one in types]
    return Query(
        np.array(types),
        [Alternative(partial(Steps, (A, B), selection), labels, [False] * len(types))],
        np.array(labels) >= 0,
        np.array([1, 1, 0]),
    )


def windows_of(*ranges: tuple[int, int]) -> Windows:
    """Return windows given as begin and end."""
    starts, stops = np.array(ranges).T
    return Windows(starts, stops)


def test_pairs_are_the_events_of_each_window_with_their_positions() -> None:
    pairs = windows_of((0, 3), (2, 4)).pairs
    assert pairs.events.tolist() == [0, 1, 2, 2, 3]
    assert pairs.windows.tolist() == [0, 0, 0, 1, 1]
    assert pairs.positions.tolist() == [0, 1, 2, 0, 1]


def test_a_match_of_other_events_is_a_false_negative_and_a_false_positive() -> None:
    part = Part(a_then_b([A, A, B, B, A, B]), windows_of((0, 4), (4, 6), (2, 4)))
    nothing = compared(part, np.zeros(8, np.bool_))
    assert (nothing.windows, nothing.matches, nothing.lost, nothing.made) == (3, 2, 0, 0)
    dropped = np.zeros(8, np.bool_)
    dropped[0] = True  # A1: (A2, B3) stands in for (A1, B3)
    tally = compared(part, dropped)
    assert (tally.lost, tally.made, tally.without) == (1, 1, 0)
    dropped[5] = True  # the only B of the second window
    tally = compared(part, dropped)
    assert (tally.lost, tally.made, tally.without) == (2, 1, 1)
    assert (tally.negatives, tally.positives, tally.empty) == (100, 50, 50)
    assert tally.share == 100 * 2 / 8


def test_what_is_learnt_from_are_types_and_positions_of_the_events_in_matches() -> None:
    finished = Part(a_then_b([C, A, C, B, A]), windows_of((0, 5), (1, 4), (2, 4))).finished
    assert finished.sizes.tolist() == [5, 3, 2]
    assert finished.hits.windows.tolist() == [0, 0, 1, 1]
    assert finished.hits.types.tolist() == [A, B, A, B]
    assert finished.hits.positions.tolist() == [1, 3, 0, 2]
    assert finished.matches.tolist() == [0, 0, 1, 1]
    assert len(finished.events) == 10


def test_amounts_are_those_of_section_3_4() -> None:
    """[espice] §3.4: x = (R − th) · p_size / R; windows of 2,000 at 10,000/s are one partition."""
    amount = Surge(1.2).amount(2_000.0)
    assert amount.share == pytest.approx(1 / 6)
    assert amount.partitions == 1
    assert Surge(1.4).amount(2_001.0).partitions == 2
    assert Surge(1.2, throughput=44.0).amount(630.0).partitions == 72


def test_espice_keeps_a_sequence_that_always_comes_alike_and_the_rivals_do_not() -> None:
    seed = 1
    stream = np.random.default_rng(seed).permuted(np.tile([A, B, *[C] * 8], (400, 1)), axis=1)
    types = stream.ravel().tolist()
    query = a_then_b(types)
    starts = np.arange(0, len(types), 10)
    whole = Windows(starts, starts + 10)
    group = Group([Part(query, whole.of(starts < 2_000))], [Part(query, whole.of(starts >= 2_000))])
    espice = judged(group, MAKERS[ESPICE], Surge(1.4), seed=seed)
    random = judged(group, MAKERS["random"], Surge(1.4), seed=seed)
    assert espice.matches == random.matches > 50
    assert espice.share == pytest.approx(100 * (1 - 1 / 1.4), abs=4)
    assert espice.lost == 0 < random.lost


def test_bl_loses_as_many_times_more_as_its_lost_by_ours() -> None:
    runs = {
        ("R1", ESPICE): Runs([Tally(lost=2), Tally(lost=0)]),
        ("R1", BASELINE): Runs([Tally(lost=6), Tally(lost=4)]),
    }
    assert Found(100, runs).factor("R1") == 5


def test_the_size_of_a_window_is_predicted_by_the_pace_and_better_with_each_event() -> None:
    """Ten events a second, then five: windows of 2 s that open while it slows down."""
    time = np.concatenate([np.arange(0, 4, 0.1), np.arange(4, 10, 0.2)])
    before = np.arange(len(time)) - np.searchsorted(time, time - 2.0)
    windows = Windows(np.array([20, 35, 55]), np.array([40, 48, 65]), Pace(time, 2.0, before))
    predicted, pairs = windows.predicted, windows.pairs
    assert predicted is not None
    steady = pairs.windows != 1
    assert np.abs(predicted - windows.sizes[pairs.windows])[steady].max() <= 1
    slowing = predicted[~steady]
    assert slowing[0] == 20
    assert abs(slowing[-1] - 13) <= 1
    assert (predicted > pairs.positions).all()


def test_windows_of_many_lengths_have_each_start_at_most_once() -> None:
    short, long = windows_of((0, 2), (1, 3), (5, 7)), windows_of((0, 4), (1, 5))
    mixed = one_of_each([short, long], np.random.default_rng(3))
    assert (np.diff(mixed.starts) > 0).all()
    assert set(mixed.sizes.tolist()) <= {2, 4}


@pytest.mark.data
def test_strikers_have_windows_of_their_sprints_that_no_break_cuts_short() -> None:
    of = positions(1)
    for striker in STRIKERS:
        windows = windows_1(of, striker, 15.0)
        assert (of.tags[of.player[windows.starts]] == striker).all()
        assert (of.speed_mps[windows.starts] >= 5).all()
        assert windows.sizes.min() > 140
        assert windows.sizes.max() < 190


@pytest.mark.data
def test_no_window_is_judged_with_what_events_of_its_own_have_taught() -> None:
    for group in q1.groups(1, count=2, selection="first", rate_hz=1):
        for trained, part in zip(group.training, group.judged, strict=True):
            assert not set(trained.windows.pairs.events) & set(part.windows.pairs.events)
    of = quotes(100, order="a minute", seed=1)
    trained_, judged_ = split(of, opened_by_leading(of, 4))
    assert trained_.stops.max() <= judged_.starts.min()


@pytest.mark.data
def test_quotes_of_a_minute_are_shuffled_anew_or_keep_one_order() -> None:
    run, minute = (quotes(60, order=order, seed=1) for order in ("a run", "a minute"))
    for of in (run, minute):
        assert (np.diff(of.minute) >= 0).all()
    same_minute = np.diff(run.minute) == 0
    assert (np.diff(run.place[run.contract])[same_minute] > 0).all()
    assert not (np.diff(minute.place[minute.contract])[np.diff(minute.minute) == 0] > 0).all()


@pytest.mark.data
def test_steps_are_active_calls_in_the_order_of_the_run() -> None:
    of = quotes(60, order="a run", seed=2)
    assert len(set(steps_3(of).tolist())) == 20
    assert of.is_call[steps_3(of)].all()
    assert (np.diff(of.place[steps_3(of)]) > 0).all()
    assert len(steps_4(of)) == 14
    assert len(REPEATED) == 14
    assert np.bincount(steps_4(of)).max() == 4


@pytest.mark.data
def test_matches_of_real_quotes_are_those_of_the_whole_windows() -> None:
    """What fits nothing is left out before the matcher, which must change nothing."""
    part = q2.groups(1, count=10, selection="last")[0].judged[0]
    windows = part.windows.of(np.arange(0, len(part.windows), 40))
    plain = [
        first_match(part.query.alternatives, range(start, stop))
        for start, stop in zip(windows.starts.tolist(), windows.stops.tolist(), strict=True)
    ]
    assert part.query.matches(windows) == plain
    assert any(plain)


def test_reads_have_each_pair_of_an_event_and_a_window_once() -> None:
    starts = np.array([0, 3, 9_998, 10_001, 24_990])
    windows = Windows(starts, starts + 10)
    types = np.arange(25_000) % 7
    query = Query(types, [], np.ones(25_000, np.bool_), np.ones(7))
    found = set()
    for own, events, spans in reads_of(query, windows, 10):
        assert own.tolist() == types[events].tolist()
        for first, begin, end in zip(spans.firsts, spans.begins, spans.ends, strict=True):
            window = int(first + events[0])
            found |= {(window, int(event)) for event in events[begin:end]}
    pairs = windows.pairs
    assert found == set(zip(starts[pairs.windows].tolist(), pairs.events.tolist(), strict=True))
    assert len(found) == 50

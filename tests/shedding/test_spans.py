"""A read at once drops what is dropped pair by pair, however its windows lie."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model import Int64Array
from slackwater.runtime.shedding.runs import columns_by_position
from slackwater.runtime.shedding.settings import Model, Overload
from slackwater.runtime.shedding.shedder import Amount, Shedder
from slackwater.runtime.shedding.spans import Spans, starts_of
from slackwater.runtime.shedding.windows import Places
from tests.shedding.worlds import windows_of
from tests.support.chance import chance
from tests.support.examples import a_third
from tests.support.shedders import SHEDDERS

BOUND = Overload(1_000_000_000)
KINDS: tuple[str, ...] = ("espice", "featured", "contest", "baseline", "random")


def shedder(kind: str, model: Model) -> Shedder:
    return SHEDDERS[kind](model, 5)


def trained(kind: str, draw: Random, *, size: int, types: int, **model: object) -> Shedder:
    """Return a shedder that has seen windows of about this size, with a feature of four values."""
    settings = Model(**{"first": 20, "explore": 0.0} | model)  # type: ignore[arg-type]
    one = shedder(kind, settings)
    finished = windows_of(draw, windows=60, sizes=(size, size + 9), types=types)
    some = [
        Places(at.windows, at.types, at.positions, (at.types + at.positions) % 4)
        for at in (finished.hits, finished.events)
    ]
    one.learn(replace(finished, hits=some[0], events=some[1]))
    return one


def spans_of(draw: Random, events: int, windows: int, sizes: list[int]) -> Spans:
    """Return windows that began before these events or among them; some outgrew their size."""
    firsts = np.array([draw.randint(-max(sizes), events - 1) for _ in range(windows)])
    begins = np.maximum(firsts, 0)
    of_size = np.array([draw.choice(sizes) for _ in range(windows)])
    grown = np.array([draw.choice([0, 0, 0, 7]) for _ in range(windows)])
    ends = np.maximum(np.minimum(firsts + of_size + grown, events), begins)
    return Spans(firsts, begins, ends, of_size)


def pair_by_pair(
    one: Shedder, spans: Spans, types: Int64Array, events: Int64Array, features: Int64Array
) -> set[tuple[int, int]]:
    found = set()
    for window in range(len(spans)):
        at = np.arange(spans.begins[window], spans.ends[window])
        dropped = one.drop(
            types[at],
            at - spans.firsts[window],
            windows=np.zeros(len(at), np.int64),
            events=events[at],
            sizes=int(spans.sizes[window]),
            features=features[at],
        )
        found |= {(window, int(event)) for event in at[dropped]}
    return found


@given(
    kind=st.sampled_from(KINDS),
    share=st.sampled_from([0.05, 0.2, 0.5, 0.9, 1.0]),
    partitions=st.sampled_from([1, 1, 2, 3, 7]),
    cells=st.sampled_from([4, 7, 64, 90]),
    size=st.sampled_from([10, 90, 300]),
    several=st.booleans(),
    types=st.sampled_from([3, 40]),
    cutting=st.sampled_from(["exact", "at least"]),
    scale=st.sampled_from(["rank", "type"]),
    by_stretches=st.booleans(),
    many=st.sampled_from([0.0, 2 / 3, 1.0]),
    draw=chance,
)
@a_third
def test_a_read_at_once_drops_what_is_dropped_pair_by_pair(  # noqa: PLR0917 - all are drawn
    kind: str,
    share: float,
    partitions: int,
    cells: int,
    size: int,
    several: bool,
    types: int,
    cutting: str,
    scale: str,
    by_stretches: bool,
    many: float,
    draw: Random,
) -> None:
    one = trained(kind, draw, size=size, types=types, cells=cells, cutting=cutting, scale=scale)
    one.aim(Amount(share, partitions))
    events = draw.choice([3, 40, 400])
    sizes = [size, size + 1, 2 * size] if several else [size]
    spans = spans_of(draw, events, draw.choice([1, 5]), sizes)
    # Also types that were never seen, and one that is none.
    codes = np.array([draw.choice([*range(types + 2), -1]) for _ in range(events)])
    features, numbers = np.arange(events) % 5, np.arange(events) + 1_000
    with pytest.MonkeyPatch.context() as patched:
        if by_stretches:
            patched.setattr("slackwater.runtime.shedding.runs._SHORT", 0)
            patched.setattr("slackwater.runtime.shedding.runs._MANY", many)
            patched.setattr("slackwater.runtime.shedding.runs._MANY_CELLS", many)
        found = one.drop_spans(codes, spans, events=numbers, features=features)
    which, at = found.pairs()
    pairs = set(zip(which.tolist(), at.tolist(), strict=True))
    assert len(pairs) == len(at), "no pair comes twice"
    for window in range(len(spans)):
        inside = range(int(spans.begins[window]), int(spans.ends[window]))
        sure = {(window, event) for event in inside if found.surely[event]}
        assert not sure & pairs
        pairs |= sure
    assert pairs == pair_by_pair(one, spans, codes, numbers, features)


@pytest.mark.parametrize("kind", ["espice", "featured"])
@pytest.mark.parametrize(("cells", "share"), [(90, 0.2), (90, 0.5), (30, 0.05), (30, 0.5)])
@pytest.mark.parametrize("partitions", [1, 2])
def test_events_that_go_nowhere_may_be_left_out(
    kind: str, cells: int, share: float, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many cells as positions, and with fewer."""
    draw = Random(7)  # noqa: S311
    monkeypatch.setattr("slackwater.runtime.shedding.runs._SHORT", 0)
    monkeypatch.setattr("slackwater.runtime.shedding.runs._MANY", 1.0)
    monkeypatch.setattr("slackwater.runtime.shedding.runs._MANY_CELLS", 1.0)
    one = trained(kind, draw, size=90, types=40, cells=cells, smooth=1.0)
    one.aim(Amount(share, partitions))
    spans = spans_of(draw, 400, 12, [90])
    spans = Spans(
        spans.firsts, spans.begins, np.minimum(spans.ends, spans.firsts + 90), spans.sizes
    )
    types, numbers = np.array([draw.randrange(42) for _ in range(400)]), np.arange(400)
    found = one.drop_spans(types, spans, events=numbers, features=numbers % 4)
    assert found.among is not None
    which, at = found.pairs()
    pairs = set(zip(which.tolist(), at.tolist(), strict=True))
    for window in range(len(spans)):
        inside = range(int(spans.begins[window]), int(spans.ends[window]))
        pairs |= {(window, event) for event in inside if found.surely[event]}
    assert pairs == pair_by_pair(one, spans, types, numbers, numbers % 4)
    assert pairs


@pytest.mark.parametrize("kind", KINDS)
def test_of_no_windows_and_of_no_amount_nothing_is_dropped(kind: str) -> None:
    one = trained(kind, Random(1), size=100, types=3)  # noqa: S311
    types = np.zeros(50, np.int64)
    none, some = np.empty(0, np.int64), np.array([0])
    one.aim(Amount(0.5))
    found = one.drop_spans(types, Spans(none, none, none, none), events=types, features=types)
    assert len(found.pairs()[1]) == 0
    one.aim(None)
    spans = Spans(some, some, some + 50, some + 100)
    found = one.drop_spans(types, spans, events=types, features=types)
    assert not found.surely.any()
    assert len(found.pairs()[1]) == 0


def test_events_whose_place_is_no_matter_are_settled_by_one_draw_each() -> None:
    one = trained("random", Random(1), size=100, types=3)  # noqa: S311
    one.aim(Amount(0.5))
    types, some = np.zeros(1_000, np.int64), np.array([0])
    spans = Spans(some, some, some + 1_000, some + 1_000)
    found = one.drop_spans(types, spans, events=np.arange(1_000))
    assert len(found.pairs()[1]) == 0
    assert found.surely.mean() == pytest.approx(0.5, abs=0.06)


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=4),
    parts=st.integers(1, 20),
    draw=chance,
)
def test_pieces_lie_in_one_part_each_and_make_up_their_spans(
    sizes: list[int], parts: int, draw: Random
) -> None:
    spans = spans_of(draw, 50, 4, sizes)
    pieces, which, part = spans.cut(parts)
    found = []
    for at in range(len(pieces)):
        for event in range(int(pieces.begins[at]), int(pieces.ends[at])):
            size = int(pieces.sizes[at])
            position = min(event - int(pieces.firsts[at]), size - 1)
            assert position * parts // size == part[at]
            found.append((int(which[at]), event))
    expected = [
        (window, event)
        for window in range(4)
        for event in range(int(spans.begins[window]), int(spans.ends[window]))
    ]
    assert found == expected


@given(size=st.integers(1, 300), cells=st.integers(1, 300))
def test_a_table_of_positions_says_what_a_division_does(size: int, cells: int) -> None:
    expected = [p * cells // size * 7 for p in range(size)]
    assert columns_by_position(size, cells, 7).tolist() == expected
    begins = starts_of(np.arange(cells + 1), np.full(cells + 1, size), cells)
    for cell, begin in enumerate(begins.tolist()):
        assert begin * cells >= cell * size > (begin - 1) * cells

"""`pattern(drift=)`: keys, cuts and columns; and beside `followed_by`, where both say the same."""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import END_NS, Batch
from slackwater.runtime.model.row_marks import REVISED, UNCERTAIN, rows_by_mark
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators import make_operator
from slackwater.runtime.operators.pattern.machine import PatternMachine
from slackwater.runtime.operators.pattern.step import PatternStep
from slackwater.runtime.plan.step import Step
from tests.patterns.drift_spec import DriftSpec, Event
from tests.support.chance import chance
from tests.support.examples import a_third, five_times
from tests.support.told import gate_read

A, B, C = (sw.patterns.event(name, where=sw.col(f"is_{name}")) for name in "abc")
MORE = sw.patterns.event("more", where=sw.col("is_b") & (sw.col("v") > A["v"]))
SCHEMA = pa.schema(
    {
        **{f"is_{name}": pa.bool_() for name in "abc"},
        **{name: pa.int64() for name in ("key", "v", "id", "off")},
    }
)
PATTERNS = {
    "two steps": sw.patterns.seq(A, B),
    "what may not come": sw.patterns.seq(A, sw.patterns.no(C), B),
    "up to the end": sw.patterns.seq(A, B, sw.patterns.no(C)),
    "any order": sw.patterns.seq(A, sw.patterns.all_of(B, C)),
    "again": sw.patterns.seq(A, sw.patterns.repeat(B, 1, 2), sw.patterns.no(C), A),
    "one or the other": sw.patterns.either(sw.patterns.seq(A, B), sw.patterns.seq(C, B)),
    "earlier events": sw.patterns.seq(A, sw.patterns.no(C), MORE),
}
SCOPES: dict[str, dict[str, Any]] = {
    "within": {"within": "6ns"},
    "windows": {"window": sw.sliding("6ns", "2ns")},
    "opened": {"window": sw.patterns.opened_by(A, within="7ns")},
}


class Row(NamedTuple):
    time: int
    key: int
    fits: frozenset[str]
    v: int
    off: int


TABLE = SCHEMA.insert(0, pa.field("ts", pa.int64())).empty_table()


def step_of(build: Any) -> Any:
    """Return the step that is added to a stream of such rows."""
    flow = sw.Dataflow("clocks")
    rows = flow.source("rows", sw.table(TABLE), event_time="ts", time_unit="ns")
    built = build(rows.key_by("key"))
    return built.flow.steps[built.name]


def pattern_step(pattern: sw.Part, **settings: Any) -> PatternStep:
    given_ = {"id": "id", "drift": sw.clocks.clock_bound("off", most="2ns")} | settings
    step: PatternStep = step_of(lambda rows: rows.pattern(pattern, **given_))
    schema = pa.schema([one for one in step.schema if one.name in WANTED])
    return step.pruned(frozenset(schema.names), keeps_late=False)


WANTED = ("key", "window_start", "events", "certain")


def batch_of(rows: list[Row], first: int) -> Batch:
    times = np.array([one.time for one in rows], dtype=np.int64)
    columns: Any = {f"is_{name}": np.array([name in one.fits for one in rows]) for name in "abc"}
    for name in ("key", "v", "off"):
        columns[name] = np.array([getattr(one, name) for one in rows], dtype=np.int64)
    columns["ts"], columns["id"] = times, np.arange(first, first + len(rows))
    return Batch(event_time_ns=times, stimulus_time_ns=times + 1, columns=columns)


@st.composite
def streams(draw: st.DrawFn) -> list[Row]:
    time, rows = 0, []
    for _ in range(draw(st.integers(1, 11))):
        time += draw(st.sampled_from([0, 0, 1, 1, 2, 3]))
        fits = frozenset(draw(st.sets(st.sampled_from("abc"), max_size=2)))
        off = draw(st.sampled_from([0, 1, 2, 90]))
        rows.append(Row(time, draw(st.integers(0, 1)), fits, draw(st.integers(0, 2)), off))
    return rows


def left(step: Step, rows: list[Row], cuts: set[int]) -> list[Batch]:
    """Return what leaves; the rows are cut, and the machine put away, behind these."""
    machine = make_operator(step)
    found, promised = [], -END_NS
    inner = sorted(one for one in cuts if one < len(rows))
    for begin, end in zip([0, *inner], [*inner, len(rows)], strict=True):
        batch = batch_of(rows[begin:end], begin)
        read = gate_read([batch], [None], rows[end - 1].time, 0, rows[end - 1].time)
        made, following, *_ = machine.work(read, 0)
        found.append(made)
        if made is not None:
            assert made.event_time_ns.min() >= promised
        promised = following
        state = deepcopy(save(machine))
        machine = make_operator(step)
        restore(machine, state)
    found.append(machine.work(gate_read([None], [None], END_NS, 0, END_NS), 0).rows)
    assert machine.rows_held == 0
    if isinstance(step, PatternStep) and "bounds_cut" in machine.counts():
        names = [one.name for one in step.pattern.asked]
        assert machine.counts()["bounds_cut"] == sum(
            one.off > 2 and fits_of(names, one) != () for one in rows
        )
    times = [time for one in found if one is not None for time in one.event_time_ns.tolist()]
    assert times == sorted(times)
    return [one for one in found if one is not None]


def matches(batches: list[Batch]) -> list[tuple[Any, ...]]:
    found = []
    for one in batches:
        marks = np.zeros(len(one), dtype=np.uint8) if one.marks is None else one.marks
        assert ((marks & UNCERTAIN.bit) > 0).tolist() == (~one.columns["certain"]).tolist()
        starts = one.columns.get("window_start", np.zeros(len(one), dtype=np.int64))
        found += zip(
            one.event_time_ns.tolist(),
            one.columns["key"].tolist(),
            np.asarray(starts).astype(np.int64).tolist(),
            [tuple(map(tuple, json.loads(text))) for text in one.columns["events"].tolist()],
            one.columns["certain"].tolist(),
            strict=True,
        )
    return found


def specified(step: PatternStep, rows: list[Row]) -> list[tuple[Any, ...]]:
    names = [one.name for one in step.pattern.asked]
    expected = []
    for key in {one.key for one in rows}:
        events = [
            Event(n, one.time, min(one.off, 2), fits_of(names, one))
            for n, one in enumerate(rows)
            if one.key == key and one.fits
        ]

        def holds(asked: int, number: int, read: dict[str, int]) -> bool:
            return rows[number].v > rows[read["a"]].v

        for one in DriftSpec(step.pattern, step.scope, step.skip, holds, 2).run(events):
            named = tuple((names[asked], number) for number, asked in one.parts)
            expected.append((one.time_ns, key, one.start_ns or 0, named, one.is_certain))
    return expected


def fits_of(names: list[str], row: Row) -> tuple[int, ...]:
    is_of = {**{name: name for name in "abc"}, "more": "b"}
    return tuple(k for k, name in enumerate(names) if is_of[name] in row.fits)


@five_times
@given(
    pattern=st.sampled_from(sorted(PATTERNS)),
    scope=st.sampled_from(sorted(SCOPES)),
    rows=streams(),
    cuts=st.sets(st.integers(1, 10), max_size=4),
)
def test_what_leaves_is_as_specified_key_by_key_however_rows_are_cut(
    pattern: str, scope: str, rows: list[Row], cuts: set[int]
) -> None:
    step = pattern_step(PATTERNS[pattern], **SCOPES[scope])
    found = matches(left(step, rows, cuts))
    assert sorted(found) == sorted(specified(step, rows))
    assert found == matches(left(step, rows, set()))


# -- beside followed_by ---------------------------------------------------------------------


@given(
    rows=streams(), drift=st.sampled_from(["0ns", "2ns", sw.clocks.clock_bound("off", most="2ns")])
)
def test_two_steps_are_those_of_followed_by_and_certain_where_it_is_surely_the_first(
    rows: list[Row], drift: Any
) -> None:
    """With skip="next": each event, and the first of the others that follows it.

    `followed_by` calls a match certain if the second event surely follows, and soon enough; the
    pattern, if no other one may have come before it, too. Nothing else is different.
    """
    both = [
        step_of(
            lambda rows: rows.followed_by(
                first=sw.col("is_a"), then=sw.col("is_b"), within="6ns", drift=drift
            )
        ),
        pattern_step(sw.patterns.seq(A, B), skip="next", within="6ns", drift=drift),
    ]
    pairs, found = (left(step, rows, set()) for step in both)
    told = {
        (first, then): certain
        for one in pairs
        for first, then, certain in zip(
            *(one.columns[name].tolist() for name in ("first_id", "then_id", "certain")),
            strict=True,
        )
    }
    got = {tuple(n for _, n in parts): certain for _, _, _, parts, certain in matches(found)}
    assert got.keys() == told.keys()
    most = {"0ns": 0, "2ns": 2}.get(drift if isinstance(drift, str) else "")
    events = [
        Event(n, one.time, min(one.off, 2) if most is None else most, ())
        for n, one in enumerate(rows)
    ]
    for (first, then), certain in told.items():
        others = [
            events[n]
            for n, one in enumerate(rows)
            if "b" in one.fits and one.key == rows[first].key and n not in (first, then)
        ]
        may_be_first = any(
            not one.is_surely_before(events[first]) and not events[then].is_surely_before(one)
            for one in others
        )
        assert got[first, then] == (certain and not may_be_first)


@given(rows=streams())
def test_all_matches_of_two_steps_have_those_of_followed_by_among_them(rows: list[Row]) -> None:
    """As `skip="any"` goes on behind the first that follows; what is certain is so in both."""
    drift = sw.clocks.clock_bound("off", most="2ns")
    pairs = left(
        step_of(
            lambda rows: rows.followed_by(
                first=sw.col("is_a"), then=sw.col("is_b"), within="6ns", drift=drift
            )
        ),
        rows,
        set(),
    )
    found = matches(left(pattern_step(sw.patterns.seq(A, B), within="6ns"), rows, set()))
    got = {tuple(n for _, n in parts): certain for _, _, _, parts, certain in found}
    for one in pairs:
        ids = zip(one.columns["first_id"].tolist(), one.columns["then_id"].tolist(), strict=True)
        for pair, certain in zip(ids, one.columns["certain"].tolist(), strict=True):
            assert got[pair] == certain


# -- columns, marks, rows -------------------------------------------------------------------


def some_rows(*text: str) -> list[Row]:
    return [Row(time, 0, frozenset(one), 0, 2) for time, one in enumerate(text)]


def test_matches_that_are_not_certain_carry_the_mark_beside_those_of_their_rows() -> None:
    machine = make_operator(pattern_step(sw.patterns.seq(A, B), within="6ns", drift="2ns"))
    batch = batch_of(some_rows("a", "", "b", "", "", "b"), 0)
    revised = np.array([REVISED.bit, 0, 0, 0, 0, 0], dtype=np.uint8)
    batch = Batch(
        event_time_ns=batch.event_time_ns,
        stimulus_time_ns=batch.stimulus_time_ns,
        columns=batch.columns,
        marks=revised,
    )
    made = machine.work(gate_read([batch], [None], END_NS, 0, END_NS), 0).rows
    assert made is not None
    assert made.columns["certain"].tolist() == [False, False]  # 5 apart: 9 at most
    assert made.marks is not None
    assert rows_by_mark(made.marks) == {"revision": 2, "uncertain": 2}


@pytest.mark.parametrize("wanted", [["certain"], ["events"], ["key", "b_v"]])
def test_columns_that_nobody_needs_are_not_made(wanted: list[str]) -> None:
    step = step_of(lambda rows: rows.pattern(sw.patterns.seq(A, B), within="6ns", drift="off"))
    assert step.reads(0, frozenset(), frozenset(wanted)) >= {"off", "is_a", "is_b"}
    machine = make_operator(step.pruned(frozenset(wanted), keeps_late=False))
    batch = batch_of(some_rows("a", "", "b"), 0)
    made = machine.work(gate_read([batch], [None], END_NS, 0, END_NS), 0).rows
    assert made is not None
    assert [*made.columns] == [name for name in step.schema.names if name in wanted]
    assert made.marks is not None


def test_a_bound_below_zero_is_an_error_that_names_the_row() -> None:
    machine = make_operator(pattern_step(sw.patterns.seq(A, B), within="6ns"))
    batch = batch_of([Row(3, 0, frozenset("a"), 0, -1)], 0)
    with pytest.raises(OperatorError, match=r"(?s)how far .* zero or more.*'off': -1"):
        machine.work(gate_read([batch], [None], 3, 0, 3), 0)


def test_rows_are_held_no_longer_than_they_may_be_needed_and_keys_are_forgotten() -> None:
    machine = make_operator(pattern_step(sw.patterns.seq(A, sw.patterns.no(C), B), within="6ns"))
    assert isinstance(machine, PatternMachine)
    most_rows = 0
    for time in range(4_000):
        rows = [Row(time, time // 3, frozenset("acb"[time % 3]), 0, 1)]
        machine.work(gate_read([batch_of(rows, time)], [None], time, 0, time), 0)
        most_rows = max(most_rows, len(machine.rows))
    assert most_rows < 100
    assert machine.rows_held <= 3 * (1024 + 1)  # a key that is not forgotten yet has its events
    assert len(save(machine)["matchers"]["of_key"]) <= 1024 + 1


@a_third
@given(pattern=st.sampled_from(sorted(PATTERNS)), scope=st.sampled_from(sorted(SCOPES)), of=chance)
def test_rows_that_are_let_go_are_in_no_match(pattern: str, scope: str, of: Random) -> None:
    rows, time = [], 0
    for _ in range(200):
        time += of.choice([0, 1, 2, 3])
        rows.append(Row(time, of.randint(0, 1), frozenset(of.choice("abc")), of.randint(0, 2), 2))
    step = pattern_step(PATTERNS[pattern], **SCOPES[scope])
    assert matches(left(step, rows, set(range(0, 300, 7)) - {0})) == matches(
        left(step, rows, set())
    )


@pytest.mark.parametrize("skip", ["any", "next"])
@pytest.mark.parametrize("scope", sorted(SCOPES))
def test_the_plan_knows_how_long_rows_are_held(skip: Any, scope: str) -> None:
    for pattern in (
        sw.patterns.seq(A, B),
        sw.patterns.seq(A, sw.patterns.no(C), B),
        sw.patterns.seq(A, B, sw.patterns.no(C)),
    ):
        step = pattern_step(pattern, skip=skip, drift="2ns", **SCOPES[scope])
        layout = step.compiled().drift
        assert layout is not None
        assert layout.held_ns <= step.traits.reach_ns <= layout.held_ns + 1

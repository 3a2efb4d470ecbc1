"""The machine of a pattern, against the specification, key by key."""

from __future__ import annotations

import json
from collections.abc import Sequence as Several
from collections.abc import Set
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import END_NS, READY_ONLY, Batch
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.patterns import ending, naming
from slackwater.runtime.patterns.normal import Asked, Normal, Sequence
from slackwater.runtime.patterns.operator.machine import pattern_machine
from slackwater.runtime.patterns.operator.step import PatternStep
from slackwater.runtime.patterns.scopes import Within
from slackwater.runtime.shedding.wrapper.shed_pattern import SheddingPattern
from tests.patterns.spec import Event, Spec
from tests.patterns.worlds import BY_COUNT, BY_TIME, GREATER, conditional, sequences
from tests.support.examples import twice
from tests.support.rows import bound
from tests.support.told import gate_read

LETTERS = "abcd"
ASKED = (
    *(Asked(name, where=col(name)) for name in LETTERS),
    Asked(
        "more",
        where=col("b"),
        also=bound(col("v") > col("a.v"), pa.int64()),
        refers=frozenset({"a"}),
    ),
)


def step_of(pattern: Normal, **settings_: Any) -> PatternStep:
    fields = [("key", pa.int64()), ("events", pa.string())]
    if not isinstance(settings_["scope"], Within):
        fields.insert(1, ("window_start", pa.timestamp("ns")))
    return PatternStep(
        name="found",
        inputs=("rows",),
        schema=pa.schema(fields),
        keys=("key",),
        pattern=pattern,
        release=READY_ONLY,
        id_column="id",
        **settings_,
    )


def batch_of(rows: Several[dict[str, Any]]) -> Batch:
    times = np.array([one["time"] for one in rows], dtype=np.int64)
    columns: Any = {
        name: np.array([name in one["is"] for one in rows], dtype=np.bool_) for name in LETTERS
    }
    for name in ("key", "v", "id"):
        columns[name] = np.array([one[name] for one in rows], dtype=np.int64)
    return Batch(event_time_ns=times, stimulus_time_ns=times + 1, columns=columns)


@st.composite
def streams(draw: st.DrawFn) -> list[dict[str, Any]]:
    time_ns, rows = 0, []
    for number in range(draw(st.integers(1, 16))):
        time_ns += draw(st.integers(0, 2))
        rows.append(
            {
                "time": time_ns,
                "key": draw(st.integers(0, 2)),
                "is": draw(st.sets(st.sampled_from(LETTERS), max_size=2)),
                "v": draw(st.integers(0, 2)),
                "id": number,
            }
        )
    return rows


def left(
    step: PatternStep, rows: list[dict[str, Any]], cuts: set[int], *, passed: Set[int] = frozenset()
) -> list[Any]:
    """Return the rows that leave; the rows are cut, and the machine put away, behind these.

    Of the reads that are in `passed` rows are passed over: see `PassingOver`.
    """
    machine = pattern_machine(step, most_kept_rows=100)
    found = []
    reads = zip([0, *sorted(cuts)], [*sorted(cuts), len(rows)], strict=True)
    for number, (begin, end) in enumerate(reads):
        part = rows[begin:end]
        if isinstance(machine, SheddingPattern):
            machine._shedding._shedding._passing.is_on = number in passed
        if part:
            read = gate_read([batch_of(part)], [None], part[-1]["time"], 0, part[-1]["time"])
            found.append(machine.work(read, 0).rows)
        state = deepcopy(save(machine))
        machine = pattern_machine(step, most_kept_rows=100)
        restore(machine, state)
    found.append(machine.work(gate_read([None], [None], END_NS, 0, END_NS), 0).rows)
    assert machine.rows_held == 0
    leaves = []
    for batch in found:
        if batch is None:
            continue
        starts = batch.columns.get("window_start", np.zeros(len(batch), dtype=np.int64))
        each = zip(
            batch.event_time_ns.tolist(),
            batch.columns["key"].tolist(),
            np.asarray(starts).astype(np.int64).tolist(),
            [json.loads(text) for text in batch.columns["events"].tolist()],
            strict=True,
        )
        leaves += [(time, key, start, *map(tuple, events)) for time, key, start, events in each]
    times = [one[0] for one in leaves]
    assert times == sorted(times)
    return leaves


def specified(step: PatternStep, rows: list[dict[str, Any]]) -> list[Any]:
    expected = []
    for key in range(3):
        own = [one for one in rows if one["key"] == key]
        if not own:
            continue
        events = []
        for number, one in enumerate(own, 1):
            fits = tuple(k for k, name in enumerate(LETTERS) if name in one["is"])
            is_more = len(step.pattern.asked) > GREATER and "b" in one["is"]
            events.append(Event(number, one["time"], fits + (GREATER,) * is_more, {"v": one["v"]}))

        def holds(asked: int, number: int, read: dict[str, int], own: Any = own) -> bool:
            return bool(own[number - 1]["v"] > own[read["a"] - 1]["v"])

        spec = Spec(
            step.pattern, step.scope, step.selection, step.consumes, step.most, step.skip, holds
        )
        for time, start, _, choice in spec.run(events):
            named = [(step.pattern.asked[part[2]].name, own[part[0] - 1]["id"]) for part in choice]
            expected.append((time, key, start or 0, *named))
    return expected


SETTINGS: dict[str, Any] = {
    "selection": st.sampled_from(["first", "last", "each", "cumulative"]),
    "consumes": st.booleans(),
    "most": st.sampled_from([None, 1, 2]),
}


def check(step: PatternStep, rows: list[dict[str, Any]], cuts: set[int]) -> None:
    if isinstance(step.scope, Within):
        step = replace(step, most=None)
    found = left(step, rows, {one for one in cuts if one < len(rows)})
    assert sorted(found) == sorted(specified(step, rows))
    assert found == left(step, rows, set())


@twice
@given(
    first=sequences(has_end=True),
    rows=streams(),
    cuts=st.sets(st.integers(1, 15), max_size=4),
    scope=st.sampled_from(BY_TIME),
    **SETTINGS,
)
def test_what_leaves_is_as_specified_key_by_key_however_rows_are_cut(
    first: Sequence, rows: list[dict[str, Any]], cuts: set[int], **given_: Any
) -> None:
    check(step_of(Normal(ASKED[:4], (first,)), **given_), rows, cuts)


@twice
@given(
    first=sequences(has_end=False),
    rows=streams(),
    cuts=st.sets(st.integers(1, 15), max_size=4),
    scope=st.sampled_from(BY_COUNT),
    **SETTINGS,
)
def test_numbers_of_events_are_those_of_the_key(
    first: Sequence, rows: list[dict[str, Any]], cuts: set[int], **given_: Any
) -> None:
    check(step_of(Normal(ASKED[:4], (first,)), **given_), rows, cuts)


@twice
@given(
    first=conditional(skip="any"),
    rows=streams(),
    cuts=st.sets(st.integers(1, 15), max_size=2),
    few=st.sampled_from([1, 4]),
    scope=st.sampled_from(BY_TIME),
    **SETTINGS,
)
def test_predicates_over_earlier_events_read_their_rows(
    first: Sequence, rows: list[dict[str, Any]], cuts: set[int], few: int, **given_: Any
) -> None:
    """Asked for one by one, or of all events at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ending, "_FEW", few)
        patch.setattr(naming, "_FEW", few)
        check(step_of(Normal(ASKED, (first,)), **given_), rows, cuts)

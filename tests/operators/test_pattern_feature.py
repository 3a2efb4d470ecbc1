"""A feature in the operator: its codes, and that it goes wherever types of events go."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from slackwater.runtime.expressions.expressions import Expr, col
from slackwater.runtime.model import Batch
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.patterns.normal import Asked, Normal, Place, Sequence
from slackwater.runtime.patterns.scopes import CountWindows, OpenedWindows, TimeWindows, WindowRule
from slackwater.runtime.shedding.shedder import Amount
from slackwater.runtime.shedding.wrapper.kinds import EventKinds
from slackwater.runtime.shedding.wrapper.words import espice
from tests.operators.test_pattern_shedding import leaves, step_of
from tests.support.rows import bound
from tests.support.shedders import shed_machine
from tests.support.told import gate_read

EVENTS, READ = 16_000, 800
SIDES = np.array(["up", "down", "left", None], dtype=object)
HOT = Normal(
    tuple(Asked(f"e{kind}", (kind,), bound(col("side") == "up", pa.string())) for kind in range(2)),
    (Sequence((Place((0,)), Place((1,)))),),
)

NONE = np.arange(0)


def batch_of(first: int, last: int) -> Batch:
    """Return events of two types and four sides, at random, the same each time."""
    chance = np.random.default_rng(5)
    kinds, sides = chance.integers(0, 2, EVENTS), chance.integers(0, 4, EVENTS)
    at = np.arange(first, last)
    columns: Any = {
        "type": kinds[first:last],
        "id": at,
        "side": pa.array(SIDES[sides[first:last]], pa.string()),
    }
    return Batch(event_time_ns=at, stimulus_time_ns=at, columns=columns)


def ran(
    feature: Expr | None, scope: WindowRule, *, type_column: str | None, is_restored: bool
) -> tuple[list[Any], Any]:
    """Return what leaves and what was shed: calm at first, then 60 % have to go."""
    pattern = HOT
    if type_column is None:
        pattern = Normal(
            tuple(Asked(one.name, None, one.where) for one in HOT.asked), HOT.alternatives
        )
    shed = espice("1h", drops="pairs", feature=feature, every=64, explore=0.1)
    step = step_of(shed, scope, pattern=pattern)
    step = replace(step, type_column=type_column)
    machine, batches = shed_machine(step, most_kept_rows=10**6), []
    for begin in range(0, EVENTS, READ):
        machine._shedding._shedding.shedder.aim(Amount(0.6) if begin >= EVENTS // 2 else None)
        end = begin + READ
        read = gate_read([batch_of(begin, end)], [None], end - 1, 0, end - 1)
        batches.append(machine.work(read, now_ns=0).rows)
        if is_restored:
            state = deepcopy(save(machine))
            machine = shed_machine(step, most_kept_rows=10**6)
            restore(machine, state)
    return leaves(batches), machine.counts().get("shedding")


@pytest.mark.parametrize(
    "scope", [CountWindows(40, 20), TimeWindows(40, 20), OpenedWindows(0, events=30)], ids=str
)
def test_a_feature_is_used_in_all_windows_and_restored_or_not_all_is_the_same(
    scope: WindowRule,
) -> None:
    found, counts = ran(col("side"), scope, type_column="type", is_restored=False)
    assert ran(col("side"), scope, type_column="type", is_restored=True) == (found, counts)
    assert counts.ranked.keys() == {"utility (type, place, feature)"}


def test_without_a_feature_the_same_overload_costs_matches() -> None:
    scope = CountWindows(40, 20)
    (found, counts), (without, plain) = (
        ran(one, scope, type_column="type", is_restored=False) for one in (col("side"), None)
    )
    assert len(without) < 0.85 * len(found)
    assert counts.dropped > 0.85 * plain.dropped


def test_a_feature_that_the_pattern_asks_for_already_is_not_used() -> None:
    """Without a column for it the type of a row is what it fits, and that says what side it has."""
    _, counts = ran(col("side"), CountWindows(40, 20), type_column=None, is_restored=False)
    assert counts.ranked.keys() == {"utility (type, place)"}


def test_the_same_value_has_the_same_code_in_any_read_and_any_run() -> None:
    shed = espice("1s", feature=col("side"))
    step = step_of(shed, CountWindows(9, 4), pattern=HOT)
    codes = {}
    for first in (0, 50):
        rows = batch_of(first, first + 50)
        known = EventKinds(step, shed).of(rows, NONE, NONE, [()])
        assert known.shape == (2, 50)
        for side, code in zip(rows.columns["side"].to_pylist(), known[1].tolist(), strict=True):
            assert codes.setdefault(side, code) == code
    assert len(set(codes.values())) == 4
    assert codes[None] == -(2**63)
    assert codes["up"] == -2501197489043044449


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (col("type") > 0, [0, 1, 1]),
        (col("type") - 5, [-5, -4, -3]),
        (col("type").cast("uint8"), [0, 1, 2]),
    ],
    ids=str,
)
def test_whole_numbers_and_truth_are_their_own_codes(feature: Expr, expected: list[int]) -> None:
    shed = espice("1s", feature=bound(feature, pa.int64()))
    step = step_of(shed, CountWindows(9, 4), pattern=HOT)
    at = np.arange(3)
    known = EventKinds(step, shed).of(
        Batch(event_time_ns=at, stimulus_time_ns=at, columns={"type": at}), NONE, NONE, [()]
    )
    assert known[1].tolist() == expected
    assert known.dtype == np.int64

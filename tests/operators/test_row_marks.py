"""Marks go with their rows: through gates and steps; and a result has those of all its lineage."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.model import (
    END_NS,
    READY_ONLY,
    Batch,
    ReleaseRule,
    batch_of,
    concat_batches,
    row_marks,
)
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.row_marks import REVISED, marked, registered
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.aggregate.written import Aggregate, Window
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.registry.operators import make_operator
from tests.support.told import gate_read, put

TIMES = pa.timestamp("ns")
SUMS = AggregateStep(
    name="sums",
    inputs=("rows",),
    schema=pa.schema({"key": pa.int64(), "window_end": TIMES, "marks": pa.int64()}),
    keys=("key",),
    window=Window(12, 4),
    aggregates={"marks": Aggregate("max", "mark")},
    release=READY_ONLY,
)
PAIRS = JoinStep(
    name="pairs",
    inputs=("a", "b"),
    schema=pa.schema({"key": pa.int64(), "mark": pa.int64(), "other": pa.int64()}),
    left_on=("key",),
    right_on=("key",),
    within_ns=5,
    where=None,
    right_names={"mark": "other"},
    release=READY_ONLY,
)


def rows(times: list[int], random: Random | None = None) -> Batch:
    """Return rows, each with its mark in a column too; none is marked without chance."""
    at = np.array(times, dtype=np.int64)
    mark = np.array([random.random() < 0.2 if random else False for _ in times], dtype=bool)
    made = batch_of(at, {"key": at % 3, "mark": mark.astype(np.int64)})
    return made.with_(marks=marked(REVISED, mark))


def bits(batch: Batch) -> list[int]:
    return [0] * len(batch) if batch.marks is None else batch.marks.tolist()


def drawn(random: Random, since: int) -> list[int]:
    return sorted(random.randrange(since, since + 40) for _ in range(random.randrange(1, 25)))


def restored(step: JoinStep | AggregateStep, machine: Operator) -> Operator:
    again = make_operator(step)
    restore(again, from_plain(to_plain(save(machine))))
    return again


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("window", [Window(10, 10), Window(12, 4)], ids=str)
def test_a_window_has_the_marks_of_its_rows_whatever_came_before(seed: int, window: Window) -> None:
    random, found = Random(seed), 0  # noqa: S311
    step = replace(SUMS, window=window)
    machine = make_operator(step)
    for read in range(30):
        # The first reads have no mark, nor have some between.
        batch = rows(drawn(random, read * 40), random if read % 4 > 1 else None)
        watermark_ns = (read + 1) * 40 if read < 29 else END_NS
        result = machine.work(gate_read([batch], [None], watermark_ns, 0, watermark_ns), 0).rows
        if result is not None:
            assert bits(result) == np.asarray(result.columns["marks"]).tolist()
            found += sum(bits(result))
            if not any(bits(result)):
                assert result.marks is None
        if random.random() < 0.3:
            machine = restored(step, machine)
    assert found


@pytest.mark.parametrize("seed", range(20))
def test_a_pair_has_the_marks_of_both_its_rows_whatever_came_before(seed: int) -> None:
    random, found = Random(seed), 0  # noqa: S311
    machine = make_operator(PAIRS)
    for read in range(30):
        ports = [
            rows(drawn(random, read * 40), random if read % 4 > 1 and side in sides else None)
            for sides in [random.choice([(0,), (1,), (0, 1)])]
            for side in (0, 1)
        ]
        passed_ns = (read + 1) * 40 if read < 29 else END_NS
        result = machine.work(gate_read(ports, [None, None], passed_ns, 0, passed_ns), 0).rows
        if result is not None:
            columns = [np.asarray(result.columns[name]) for name in ("mark", "other")]
            assert bits(result) == (columns[0] | columns[1]).tolist()
            found += sum(bits(result))
            if not any(bits(result)):
                assert result.marks is None
        if random.random() < 0.3:
            machine = restored(PAIRS, machine)
    assert found


@pytest.mark.parametrize("has_writers", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 1_000])
def test_a_gate_gives_rows_back_with_their_marks(limit: int, has_writers: bool) -> None:
    random, found = Random(limit), 0  # noqa: S311
    gate = SlackGate(
        [Writer(0, rank, is_mixed=has_writers) for rank in range(3)], rule=ReleaseRule.slack(5)
    )
    for turn in range(40):
        for writer in range(3):
            batch = rows(drawn(random, turn * 10), random if writer == turn % 3 else None)
            batch = batch.with_(writers=np.full(len(batch), writer) if has_writers else None)
            put(gate, writer, batch, promise_ns=turn * 10)
        while (read := gate.read(limit=limit)) is not None:
            for part in (*read.late, *read.ports):
                if part is not None:
                    assert bits(part) == np.asarray(part.columns["mark"]).tolist()
                    found += sum(bits(part))
    assert found


def test_batches_keep_their_marks_however_they_are_cut_and_put_together() -> None:
    plain, some = rows([1, 2]), rows([3, 4, 5])
    some = some.with_(marks=np.array([0, 1, 0], dtype=np.uint8))
    both = concat_batches([plain, some])
    assert bits(both) == [0, 0, 0, 1, 0]
    assert bits(both.slice(2, 4)) == [0, 1]
    assert bits(both.take(np.array([3, 0]))) == [1, 0]
    assert bits(both.keep(np.array([False, True, True, True, False]))) == [0, 0, 1]
    assert bits(Batch.like(both, {})) == bits(from_plain(to_plain(both))) == bits(both)
    assert both.nbytes == plain.nbytes + some.nbytes - 3 + 5
    assert concat_batches([plain, plain]).marks is None


def test_rows_may_have_several_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_marks, "_known", dict(row_marks._known))
    other = registered("made-up", heading="made up")
    first = marked(REVISED, np.array([True, False, True]))
    both = marked(other, np.array([True, True, False]), first)
    assert both is not None
    assert both.tolist() == [REVISED.bit | other.bit, other.bit, REVISED.bit]
    assert row_marks.rows_by_mark(both) == {"revision": 2, "made-up": 2}
    assert marked(other, np.zeros(3, dtype=bool), first) is first
    assert marked(other, np.zeros(3, dtype=bool)) is None


def test_there_are_eight_marks_at_most_each_with_a_name_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_marks, "_known", dict(row_marks._known))
    with pytest.raises(ValueError, match="8 names, each once"):
        registered(REVISED.name, heading="again")
    for number in range(len(row_marks.row_marks()), 8):
        registered(f"mark-{number}", heading="made up")
    assert row_marks.all_bits() == 255
    with pytest.raises(ValueError, match="8 names, each once"):
        registered("one more", heading="made up")

"""Few rows of a live source, read as Python's numbers, are what they are by way of arrays."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import OrderError, SchemaError
from slackwater.runtime.expressions.expressions import Expr, col
from slackwater.runtime.expressions.row_tests import FEW_ROWS, row_tests
from slackwater.runtime.model.nullable import is_true
from slackwater.runtime.model.plain import to_plain
from slackwater.runtime.model.schema import inside_schema
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.schedule.source_node import SourceNode
from slackwater.runtime.sources.column_reader import ColumnReader
from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput, SourceSpec
from tests.support.rows import evaluated
from tests.support.sources import handed, next_due_ns, take
from tests.support.states import canonical

SCHEMA = pa.schema(
    {
        "t": pa.int64(),
        "n": pa.int64(),
        "x": pa.float64(),
        "at": pa.timestamp("ns"),
        "word": pa.string(),
        "flag": pa.bool_(),
        "unused": pa.int16(),
    }
)
NEEDED = frozenset({"t", "n", "x", "at", "word", "flag"})
TESTS: list[Expr | None] = [
    None,
    col("x") > 0.5,
    (col("x") > 0.5) & (col("n") <= 7),
    col("n") == float(2**53),  # which NumPy finds equal to 2**53 + 1, and Python does not
    col("t") >= 6_000_000,
]
ODD = ["null", "null", "far", "turned", "turned", "cast", "more", "missing"]
MOST_STEPS = 2_000


@dataclass(frozen=True)
class Blocks:
    """Blocks that were made before, and None in between; one's own input, or one of ours."""

    blocks: Sequence[pa.RecordBatch | None]
    kind: pa.Schema
    reads_inline: bool

    def describe(self) -> str:
        return "blocks"

    def schema(self) -> pa.Schema:
        return self.kind

    def open(self) -> BlocksReader:
        return BlocksReader(list(self.blocks))


class BlocksReader:
    def __init__(self, blocks: list[pa.RecordBatch | None]) -> None:
        self._blocks = blocks[::-1]

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        return self._blocks.pop() if self._blocks else END_OF_INPUT

    def close(self) -> None:
        pass


@dataclass
class Case:
    """Blocks, and how their source is to take them."""

    blocks: list[pa.RecordBatch | None]
    kind: pa.Schema
    settings: dict[str, Any]
    predicate: Expr | None
    seed: int
    not_tried: int = 16

    def machine(self, *, by_arrays: bool) -> SourceNode:
        # An input of ours is always read as arrays; nothing else hangs on that here.
        blocks = Blocks(self.blocks, self.kind, by_arrays)
        spec = SourceSpec(input=blocks, event_time="t", **self.settings)
        schema = inside_schema(self.kind)
        machine = SourceNode("s", spec, schema, writer_id=0, start_ns=100, needed=NEEDED)
        machine.row_tests = None if self.predicate is None else row_tests(self.predicate)
        return machine


@st.composite
def cases(draw: st.DrawFn) -> Case:
    chance = random.Random(draw(st.integers(0, 2**32)))  # noqa: S311 - jitter, not a secret
    settings: dict[str, Any] = {"out_of_order": draw(st.sampled_from(["error", "late"]))}
    settings["disorder_ns"] = draw(st.sampled_from([0, 0, 3_000_000]))
    settings["time_unit"] = draw(st.sampled_from([None, "ns", "ms", "s"]))
    settings["max_rows"] = draw(st.sampled_from([3, FEW_ROWS, 65_536]))
    kind = SCHEMA
    if draw(st.booleans()):  # the last, for a time is a timestamp, whatever the unit says
        kind = SCHEMA.set(0, pa.field("t", pa.timestamp("us")))
    odd = draw(st.sampled_from([0.0, 0.0, 0.15]))  # how many blocks have something unusual
    step = {"ms": 1, "s": 1}.get(settings["time_unit"] or "", 1_000_000)
    blocks: list[pa.RecordBatch | None] = []
    now = draw(st.sampled_from([5, 5 * step, -7 * step, 1_600_000_000]))
    for _ in range(draw(st.integers(1, 40))):
        is_odd = chance.random() < odd
        times = []
        for _ in range(chance.choice([0, 1, 1, 2, 4, 4, FEW_ROWS, FEW_ROWS + 1])):
            now += chance.choice([0, 1, 2]) * step
            behind = chance.choice([1, 9]) * step if is_odd and chance.random() < 0.2 else 0
            times.append(now - behind)
        blocks.append(_block(times, kind, chance, is_odd=is_odd))
        blocks += [None] * chance.choice([0, 0, 1])
    return Case(
        blocks,
        kind,
        settings,
        draw(st.sampled_from(TESTS)),
        chance.randrange(2**32),
        draw(st.sampled_from([0, 0, 2, 16])),
    )


def _block(
    times: list[int], kind: pa.Schema, chance: random.Random, *, is_odd: bool
) -> pa.RecordBatch:
    rows = len(times)
    values: dict[str, Sequence[Any]] = {
        "t": times,
        "n": [chance.choice([3, 7, 8, 2**53 + 1]) for _ in times],
        "x": [chance.choice([0.0, 0.5, 0.7, float("nan")]) for _ in times],
        "at": [chance.randrange(10**18) for _ in times],
        "word": [chance.choice("abc") for _ in times],
        "flag": [chance.random() < 0.5 for _ in times],
        "unused": [1] * rows,
    }
    odd = chance.choice(ODD) if is_odd and rows else ""
    if odd == "null":
        name = chance.choice(["t", "n", "x", "x", "word", "word", "word", "unused", "unused"])
        values[name] = [None, *list(values[name])[1:]]
    if odd == "far":
        values["t"] = [*times[:-1], chance.choice([2**62 + 1, -(2**62) - 1])]
    arrays = {
        field.name: pa.array(values[field.name], pa.int64()).view(field.type)
        if pa.types.is_timestamp(field.type)
        else pa.array(values[field.name], field.type)
        for field in kind
    }
    if odd == "turned":
        arrays = dict(reversed(arrays.items()))
    if odd == "cast":
        arrays["n"] = arrays["n"].cast(chance.choice([pa.int32(), pa.uint64()]), safe=False)
    if odd == "missing":
        del arrays["x"]
    if odd == "more":
        arrays["more"] = pa.nulls(rows)
    return pa.record_batch(arrays)


@given(cases())
def test_few_rows_are_what_they_are_by_way_of_arrays(case: Case) -> None:
    with patch("slackwater.runtime.sources.few_rows._NOT_TRIED", case.not_tried):
        drive(case)


def drive(case: Case) -> None:
    """Ask both the same, and see that they answer alike."""
    chance = random.Random(case.seed)  # noqa: S311 - jitter, not a secret
    machines = [case.machine(by_arrays=by_arrays) for by_arrays in (True, False)]
    now = 200
    for _ in range(MOST_STEPS):
        now += chance.choice([0, 1, 50])
        most = chance.choice([1, 2, 5, None, None, None])
        if chance.random() < 0.5:
            assert same(_tried(next_due_ns, one, now) for one in machines)
        if chance.random() < 0.15:
            states = [save(one) for one in machines]
            assert same(canonical(to_plain(state)) for state in states)
            if chance.random() < 0.3:  # each goes on with what the other one was
                machines = [case.machine(by_arrays=by_arrays) for by_arrays in (True, False)]
                for one, state in zip(machines, reversed(states), strict=True):
                    restore(one, state)
        taken = [_tried(_taken, one, case.predicate, now, most) for one in machines]
        assert same(taken)
        assert same(
            (
                one.taken,
                one.rows_out,
                one.late_dropped,
                one.held,
                one.newest_ns,
                one.progress.promise_ns,
            )
            for one in machines
        )
        if isinstance(taken[0], tuple) or machines[0].is_ended:
            return
    pytest.fail("the source never ends")


def test_columns_of_rows_that_fail_the_filter_are_never_read() -> None:
    chance = random.Random(1)  # noqa: S311 - jitter, not a secret
    blocks = [_block([n, n], SCHEMA, chance, is_odd=False) for n in (5, 6, 7)]
    case = Case([*blocks], SCHEMA, {"time_unit": "s"}, col("n") > 2**54, 0)
    machine = case.machine(by_arrays=False)
    first = take(machine, 1)  # of which the unit is seen
    assert first is not None
    assert first.rows == 2
    with patch.object(ColumnReader, "read", side_effect=AssertionError):
        for n in (6, 7):
            assert next_due_ns(machine, 10) == 10
            got = handed(machine, 10)
            assert got.progress is not None
            assert (got.rows, got.tested, got.progress.promise_ns) == (None, 2, n * 10**9)
            assert (machine.held, machine.rows_in) == (0, 2 * (n - 4))


def same(both: Iterable[Any]) -> bool:
    """Whether two are equal; they are printed if not."""
    by_arrays, by_lists = both
    assert by_lists == by_arrays
    return True


def _tried(do: Any, *given: Any) -> Any:
    """Return what a call returns, or (class, text) of what it raises."""
    try:
        return do(*given)
    except (OrderError, SchemaError) as problem:
        return type(problem), str(problem)


def _taken(
    machine: SourceNode, predicate: Expr | None, now_ns: int, most: int | None
) -> dict[str, Any] | None:
    """Return a message as it is behind the filter, with how many rows that has left out."""
    got = handed(machine, now_ns, max_rows=most)
    if got.progress is None:
        return None
    batch, left_out = got.rows, got.tested or 0
    if batch is not None and predicate is not None:
        kept = batch.keep(is_true(evaluated(predicate, batch)))
        left_out += len(batch) - len(kept)
        batch = kept
    return {
        "rows": None if batch is None or not len(batch) else canonical(to_plain(batch)),
        "left_out": left_out,
        "promise": (got.progress.promise_ns, got.progress.stimulus_ns),
    }

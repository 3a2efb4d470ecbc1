"""Custom aggregates: the user's functions, their errors, and their states in checkpoints."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

import slackwater as sw
from slackwater.runtime.errors import OperatorError, SettingError, SlackwaterError, TypeMismatch
from slackwater.runtime.model import GateRead
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.registry.operators import make_operator
from tests.operators.literal import (
    Leaves,
    Segment,
    any_row,
    leaves_of,
    reads_of,
    run,
    streams,
)
from tests.support.chance import chance
from tests.support.tables import result_of

ROWS = pa.schema({"area": pa.int64(), "x": pa.float64(), "s": pa.string()})
VALUES = any_row([1, 2, None], [0.1, 0.2, 1e16, None], ["a", "b", None])


def with_row(state: list[Any], row: dict[str, Any]) -> list[Any]:
    state.append([row["x"], row["s"]])
    return state


def both(state: list[Any], other: list[Any]) -> list[Any]:
    state += other
    return state


def texts(**options: Any) -> sw.Aggregate:
    """Rows one after the other: all that was added, in its order."""
    return sw.custom(list, with_row, both, repr, "string", columns=["x", "s"], **options)


def added() -> sw.Aggregate:
    return sw.custom(
        init=lambda: 0.0,
        add=lambda state, row: state + (row["x"] or 0),
        merge=lambda state, other: state + other,
        result=lambda state: state,
        type="float64",
    )


def step_of(window: Any, **aggregates: sw.Aggregate) -> AggregateStep:
    columns = {field.name: pa.array([], field.type) for field in ROWS}
    empty = pa.table({"t": pa.array([], pa.int64()), **columns})
    stream = sw.Dataflow("f").source("rows", sw.table(empty), event_time="t").drop("t")
    step = stream.aggregate(aggregates, by="area", window=window, name="made").flow.steps["made"]
    assert isinstance(step, AggregateStep)
    return step


WINDOWS = [sw.tumbling("10ns"), sw.sliding("12ns", "4ns")]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@given(segments=streams([VALUES]), cut=chance)
def test_rows_are_added_in_order_whatever_is_cut_or_restored(
    window: Any, segments: list[Segment], cut: Random
) -> None:
    step = step_of(
        window, all=texts(), some=texts(where=sw.col("x") < 1), total=added(), sum=sw.sum("x")
    )

    def reads(cut: Random | None = None) -> list[GateRead]:
        return list(reads_of(segments, [ROWS], cut))

    expected = run(make_operator(step), iter(reads()))
    leaves: Leaves = []
    machine: Operator = make_operator(step)
    for read in reads(cut):
        state = to_plain(save(machine))
        machine = make_operator(step)
        restore(machine, from_plain(state))
        leaves += leaves_of([machine.work(read, now_ns=0).rows])
    assert leaves == expected
    for *_, total, summed in expected:
        assert summed in (total, "None"), "0.0 of nulls alone"


def table(**columns: Any) -> pa.Table:
    rows = len(next(iter(columns.values())))
    return pa.table({"ts": pa.array(range(rows), pa.timestamp("ms")), **columns})


def made_of(aggregate: sw.Aggregate, rows: pa.Table, window: Any = None, **options: Any) -> Any:
    made = result_of(
        lambda stream: stream.aggregate(
            by="k", window=window or sw.tumbling("1s"), made=aggregate, name="minutes", **options
        ),
        rows,
        batch_rows=2,
    )
    return made["made"].to_pylist()


ABC = table(k=["a", "b", "a"], x=[1, 2, 3])


@pytest.mark.parametrize("window", [sw.tumbling("1s"), sw.sliding("2s", "1s")], ids=str)
def test_a_window_in_which_no_row_counts_is_null(window: Any) -> None:
    counted = sw.custom(
        lambda: 0,
        lambda state, _: state + 1,
        lambda state, other: state + other,
        lambda state: None if state == 1 else state,
        "int64",
        where=sw.col("k") == "a",
    )
    assert set(made_of(counted, ABC, window)) == {2, None}


class Failing:
    """Functions of which one raises, or returns what does not fit."""

    def __init__(self, which: str, value: Any) -> None:
        self.which, self.value = which, value

    def _of(self, name: str, value: Any) -> Any:
        if name != self.which:
            return value
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value

    def aggregate(self) -> sw.Aggregate:
        return sw.custom(
            lambda: self._of("init", 1),
            lambda state, row: self._of("add", state + row["x"]) if row["k"] == "a" else 1,
            lambda state, other: self._of("merge", state + other),
            lambda state: self._of("result", state),
            "int64",
        )


@pytest.mark.parametrize("which", ["init", "add", "merge", "result"])
def test_what_a_function_raises_has_its_traceback_and_its_key(which: str) -> None:
    window = sw.sliding("2ms", "1ms")
    rows = table(k=["a", "a", "a"], x=[1, 2, 3])
    with pytest.raises(OperatorError) as problem:
        made_of(Failing(which, ValueError("no such bus")).aggregate(), rows, window)
    text = str(problem.value)
    assert text.startswith(f"step 'minutes': {which} of 'made' raised ValueError: no such bus")
    assert text.count("step 'minutes'") == 1
    assert "in _of" in text
    assert "raise self.value" in text
    where = "of key {'k': 'a'}" if which in ("merge", "result") else "'k': 'a'"
    assert where in text


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("7", r"result of 'made' returned '7', a str, and its type is int64"),
        (1.5, r"returned 1.5, a float, and its type is int64"),
        ([1], r"returned \[1\], a list"),
    ],
)
def test_a_result_of_another_type_is_refused_with_its_key(value: Any, says: str) -> None:
    with pytest.raises(OperatorError, match=rf"(?s)'minutes': .*{says}.*of key {{'k': 'a'}}"):
        made_of(Failing("result", value).aggregate(), ABC)


@pytest.mark.parametrize("which", ["init", "add"])
def test_a_function_that_returns_no_state_is_refused(which: str) -> None:
    with pytest.raises(OperatorError, match=f"{which} of 'made' returned None, .*write return"):
        made_of(Failing(which, None).aggregate(), ABC)


def test_a_state_that_cannot_be_saved_says_what_to_make_it_of() -> None:
    sets = sw.custom(
        set, lambda state, row: {*state, row["s"]}, set.union, len, "int64", columns=["s"]
    )
    machine = make_operator(step_of(WINDOWS[0], made=sets))
    (read, *_) = reads_of([Segment([], _rows(), 5, 5)], [ROWS])
    machine.work(read, 0)
    with pytest.raises(OperatorError, match=r"state of 'made' cannot be saved.*make it of numbers"):
        save(machine)


def _rows() -> list[Any]:
    from tests.operators.literal import Row  # noqa: PLC0415

    return [Row(0, 5, 0, (1, 0.5, "a"))]


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda: sw.custom(0, with_row, both, len, "int64"), TypeMismatch, "init=0 is not a func"),  # type: ignore[arg-type]
        (lambda: sw.custom(list, with_row, both, len, "bigint"), TypeMismatch, "write 'int64'"),
        (
            lambda: sw.custom(list, with_row, both, len, "int64", columns="x"),
            SettingError,
            r"must be a list of texts or None; write columns=\['x'\]",
        ),
        (
            lambda: step_of(
                WINDOWS[0], made=sw.custom(list, with_row, both, len, "int64", columns=["w"])
            ),
            SlackwaterError,
            "'w'",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused_where_they_are_written(
    wrong: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        wrong()


def test_only_a_step_with_custom_aggregates_runs_users_code() -> None:
    plain, custom = (step_of(WINDOWS[0], made=each) for each in (sw.count(), added()))
    assert not plain.traits.runs_users_code
    assert custom.traits.runs_users_code
    assert "gives    made = custom(area, x, s)" in list(custom.explained({}))
    assert custom.bare().custom is None
    assert custom.bare().traits.runs_users_code
    assert step_of(WINDOWS[0], made=texts()).reads(0, frozenset("axs"), frozenset()) == {
        "area",
        "x",
        "s",
    }

"""Users' objects arrive through Ray with arrays that can be written to."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
from ray import cloudpickle

from slackwater.actors.nodes.in_band import InBand, copied


def sent(argument: Any) -> Any:
    """Return what a worker gets: large buffers are read-only there, as in Ray's store."""
    beside: list[pickle.PickleBuffer] = []
    data = cloudpickle.dumps(argument, protocol=5, buffer_callback=beside.append)
    return pickle.loads(data, buffers=[bytes(one.raw()) for one in beside])  # noqa: S301


def test_an_array_of_a_function_can_be_written_to_where_it_arrives() -> None:
    totals = np.zeros(5)

    def add(n: int) -> float:
        totals[n] += 1
        return float(totals.sum())

    class Kept:
        rows = totals

    assert not sent(totals).flags.writeable
    again, kept = sent(InBand((add, Kept())))
    assert [again(1), again(2)] == [1.0, 2.0]
    assert kept.rows[1] == 1.0, "what they shared they share there"
    assert not totals.any()


def test_rows_of_arrow_are_not_copied_into_it() -> None:
    table = pa.table({"x": np.arange(100_000)})
    assert len(InBand({"rows": table}).__reduce__()[1][0]) < 1_000
    assert sent(InBand([table, 7])) == [table, 7]


def test_a_copy_is_writable_and_shares_rows_of_arrow_and_what_it_is_told_to() -> None:
    table, array, calls = pa.table({"n": [1, 2, 3]}), np.arange(3), [1]
    rows, other, same, list_of_calls = copied((table, array, calls, [calls]), shared=[calls])
    assert rows is table
    other[0] = 7
    assert array[0] == 0
    assert same is calls is list_of_calls[0]

"""Fig. 6 of [ssg]: what a slack-ready tuple costs a join whose windows are 4 long.

The text gives t(2,1).ts = 5.5, max_ts = 9, 3.5 > SLT, t(2,2).ts − t(1,1).ts = 3, windows of 4, and
that t(2,1) moves t(1,1) out of its window. So t(1,1).ts < 1.5, and t(2,2).ts < 4.5. The numbers
in the figure itself are not in the text; inferred, and any that keep to these would do:

S1   t(1,1) = 1   t(2,1) = 5.5   t(3,1) = 9      SLT = 3
S2   t(1,2) = 2   t(2,2) = 4     t(3,2) = 9.5

"Compares it only against t(1,1) and not t(2,1)" has the two the wrong way round, as the sentences
behind it say: t(1,1) is what has left the window.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.model import READY_ONLY, Batch, GateRead, batch_of
from slackwater.runtime.operators.join.machine import JoinMachine
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.plan.traits import Keep
from tests.support.rules import rule
from tests.support.told import put

TENTH = 1  # a tenth of the paper's time unit is 1 ns here
STEP = JoinStep(
    name="fig6",
    inputs=("S1", "S2"),
    schema=pa.schema({"key": pa.int64(), "one": pa.string(), "two": pa.string()}),
    left_on=("key",),
    right_on=("key",),
    within_ns=40 * TENTH,
    where=None,
    right_names={"two": "two"},
    release=READY_ONLY,
)

S1, S2 = 0, 1
BEFORE = [(S1, "t11", 10), (S2, "t12", 20), (S1, "t21", 55), (S1, "t31", 90)]
DELAYED = (S2, "t22", 40)


class Operator:
    """The join of Fig. 6 behind its gate."""

    def __init__(self, slt: int | None, keep: Keep = "slack") -> None:
        self.gate = SlackGate([Writer(0, 0), Writer(1, 1)], rule=rule(slt))
        self._join = JoinMachine(replace(STEP, keep=keep), most_kept_rows=10**6)

    def insert(self, stream: int, name: str, tenths: int) -> None:
        column = "one" if stream == S1 else "two"
        row = batch_of([tenths], {"key": [1], column: [name]})
        put(self.gate, stream, row, promise_ns=tenths)

    def request(self) -> tuple[str, set[tuple[str, str]]] | None:
        """Read one tuple; return it and the pairs that it makes, or None."""
        while (released := self.gate.read(limit=1)) is not None:
            result = self._join.work(released, now_ns=0).rows
            if names := names_of(released):
                (name,) = names
                return name, pairs_of(result)
        return None


def names_of(released: GateRead) -> list[str]:
    found: list[str] = []
    for batches in (released.late, released.ports):
        for batch, column in zip(batches, ("one", "two"), strict=True):
            found += [] if batch is None else text(batch, column)
    return found


def pairs_of(batch: Batch | None) -> set[tuple[str, str]]:
    if batch is None:
        return set()
    return set(zip(text(batch, "one"), text(batch, "two"), strict=True))


def text(batch: Batch, name: str) -> list[str]:
    column = batch.columns[name]
    assert isinstance(column, pa.Array)
    return [str(value) for value in column.to_pylist()]


def test_diagram_a_ready_tuples_only_wait_for_the_delayed_one_and_miss_no_pair() -> None:
    operator = Operator(None)
    for stream, name, tenths in BEFORE:
        operator.insert(stream, name, tenths)
    assert operator.request() == ("t11", set())
    assert operator.request() == ("t12", {("t11", "t12")})
    assert operator.request() is None  # t21 = 5.5 waits: merge_ts = 2
    operator.insert(*DELAYED)
    assert operator.request() == ("t22", {("t11", "t22")})
    operator.insert(S2, "t32", 95)
    assert operator.request() == ("t21", {("t21", "t12"), ("t21", "t22")})


def test_diagram_b_a_slack_ready_tuple_moves_the_window_and_a_pair_is_missed() -> None:
    operator = Operator(30)
    for stream, name, tenths in BEFORE:
        operator.insert(stream, name, tenths)
    assert operator.request() == ("t11", set())
    assert operator.request() == ("t12", {("t11", "t12")})
    # 9 − 5.5 = 3.5 > 3; and 5.5 − 1 > 4, so that t11 leaves its window.
    assert operator.request() == ("t21", {("t21", "t12")})
    operator.insert(*DELAYED)
    # The fourth request: late, compared with t21, but never with t11, 3 before it.
    assert operator.request() == ("t22", {("t21", "t22")})
    counts = operator.gate.counts()
    assert (counts.ready, counts.slack_ready, counts.late, counts.late_ready) == (2, 1, 1, 1)


def test_kept_by_the_promise_the_delayed_tuple_finds_the_pair_that_diagram_b_misses() -> None:
    operator = Operator(30, keep="promise")
    for stream, name, tenths in BEFORE:
        operator.insert(stream, name, tenths)
    assert [operator.request() for _ in range(3)] == [
        ("t11", set()),
        ("t12", {("t11", "t12")}),
        ("t21", {("t21", "t12")}),  # as soon as in b; but S2 has promised 2 only: t11 stays
    ]
    operator.insert(*DELAYED)
    assert operator.request() == ("t22", {("t11", "t22"), ("t21", "t22")})

"""A join that allows for clocks: no pair is lost, and none that is certain is wrong."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import END_NS, Batch
from slackwater.runtime.model.row_marks import UNCERTAIN
from slackwater.runtime.operators.ground.drift import Drift
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.registry.operators import make_operator
from tests.operators.literal import LiteralJoin, Row, Segment, any_row, reads_of, run, streams
from tests.operators.test_join_machine import STEP as PLAIN
from tests.support.chance import chance
from tests.support.rows import bound as bound_to
from tests.support.told import gate_read

LEFT = pa.schema({"area": pa.int64(), "line": pa.string(), "delay": pa.int64(), "off": pa.int64()})
RIGHT = pa.schema({"area": pa.int64(), "flow": pa.float64(), "off": pa.int64()})
PORTS = [
    any_row([1, 2], ["20", None], range(10), [0, 1, 2, 90]),
    any_row([1, 2], [0.5, 1.5, 2.5], [0, 1, 2, 90]),
]
STEP = replace(PLAIN, schema=PLAIN.schema.append(pa.field("certain", pa.bool_())))
DRIFTS = pytest.mark.parametrize("drift", [Drift(0), Drift(2), Drift(2, "off")], ids=str)


def bound(drift: Drift, row: Row) -> int:
    return drift.most_ns if drift.column is None else min(row.values[-1], drift.most_ns)


class LiteralUncertain(LiteralJoin):
    """Looks at pairs that are as far apart as any two clocks allow, one at a time."""

    def __init__(self, step: JoinStep, drift: Drift) -> None:
        super().__init__(
            replace(step, within_ns=step.within_ns + 2 * drift.most_ns, schema=PLAIN.schema),
            [LEFT, RIGHT],
            lambda row: row["delay"] > 2,
        )
        self.drift, self.near_ns = drift, step.within_ns

    def _pair(self, left: Row, right: Row) -> None:
        before = len(self.leaves)
        super()._pair(left, right)
        if len(self.leaves) == before:
            return
        off = bound(self.drift, left) + bound(self.drift, right)
        apart = abs(left.time - right.time)
        last = self.leaves.pop()
        if apart <= self.near_ns + off:
            self.leaves.append((*last, repr(apart <= self.near_ns - off)))


@DRIFTS
@pytest.mark.parametrize("keep", ["promise", "slack"])
@given(segments=streams(PORTS), cut=chance)
def test_it_equals_a_literal_one_however_the_rows_are_cut(
    drift: Drift, keep: Any, segments: list[Segment], cut: Random
) -> None:
    step = replace(STEP, drift=drift, keep=keep, where=bound_to(col("delay") > 2, pa.int64()))
    literal = LiteralUncertain(step, drift)
    expected = literal.run(segments)
    machine: Any = make_operator(step)
    assert run(machine, reads_of(segments, [LEFT, RIGHT], cut)) == expected
    assert machine.late_dropped == literal.late_dropped
    assert machine.counts()["comparisons"] == literal.comparisons
    assert machine.rows_held == 0


@given(segments=streams(PORTS, late=False), clocks=chance)
def test_whatever_clocks_were_off_by_no_true_pair_is_lost_and_no_certain_one_is_untrue(
    segments: list[Segment], clocks: Random
) -> None:
    rows = [row for one in segments for row in one.rows]
    drift = Drift(2, "off")
    # Each row is told by its own number, which its columns carry.
    numbered = [
        replace(
            row, values=(1, None, n, row.values[-1]) if row.port == 0 else (1, n, row.values[-1])
        )
        for n, row in enumerate(rows)
    ]
    true = [row.time + clocks.uniform(-1, 1) * bound(drift, row) for row in numbered]
    step = replace(STEP, drift=drift)
    stream = [Segment([], numbered, max([row.time for row in rows], default=0), 0)]
    told = {
        (int(delay), int(float(flow))): certain == "True"
        for *_, delay, flow, certain in run(make_operator(step), reads_of(stream, [LEFT, RIGHT]))
    }
    near = {
        (i, j)
        for i, left in enumerate(numbered)
        for j, right in enumerate(numbered)
        if left.port == 0 and right.port == 1 and abs(true[i] - true[j]) <= step.within_ns
    }
    assert near <= told.keys(), "a true pair is lost"
    assert {pair for pair, certain in told.items() if certain} <= near, "a certain one is untrue"


def test_a_pair_that_may_be_too_far_apart_carries_the_mark_of_what_is_uncertain() -> None:
    step = replace(STEP, drift=Drift(2))
    times = np.array([1, 6, 9, 10])
    left = Batch(
        event_time_ns=np.array([0]),
        stimulus_time_ns=np.array([0]),
        columns={"area": np.array([1]), "line": pa.array(["a"]), "delay": np.array([5])},
    )
    right = Batch(
        event_time_ns=times,
        stimulus_time_ns=times,
        columns={"area": np.ones(4, np.int64), "flow": times / 2},
    )
    machine = make_operator(step)
    made = machine.work(gate_read([left, right], [None, None], END_NS, 0, END_NS), now_ns=0).rows
    assert made is not None
    assert made.event_time_ns.tolist() == [1, 6, 9]
    assert made.columns["certain"].tolist() == [True, False, False]
    assert made.marks is not None
    assert made.marks.tolist() == [0, UNCERTAIN.bit, UNCERTAIN.bit]


def test_late_rows_are_told_as_they_came() -> None:
    step = replace(STEP, drift=Drift(2), keeps_late=True)
    machine = make_operator(step)
    machine.work(gate_read([None, None], [None, None], 100, 0, 100), now_ns=0)
    late = Batch(
        event_time_ns=np.array([3]),
        stimulus_time_ns=np.array([0]),
        columns={"area": np.array([1]), "flow": np.array([0.5])},
    )
    (told,) = machine.work(gate_read([None, None], [None, late], 100, 0, 100), now_ns=0).late
    assert list(told.batch.columns) == ["area", "flow"]
    assert machine.late_dropped == 1

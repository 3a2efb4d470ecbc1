"""What a sink counts of the rows that leave: each by itself, from its stimulus to its egress."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.measure.assemble import SinkMeter
from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.row_marks import REVISED, marked


def batch(stimuli_ns: Int64Array) -> Batch:
    return Batch(
        event_time_ns=np.zeros(len(stimuli_ns), dtype=np.int64),
        stimulus_time_ns=stimuli_ns,
        columns={},
    )


def test_a_sink_counts_its_rows_by_mark_but_for_those_it_leaves_out() -> None:
    meter = SinkMeter("out", "x")
    meter.add(batch(np.arange(4)), 10)
    assert meter.report.marked == {}
    some = batch(np.arange(4))
    some = some.with_(marks=marked(REVISED, np.array([True, False, True, True])))
    meter.skip(1)
    meter.add(some.slice(1, 4), 10)
    assert (meter.report.rows, meter.report.marked) == (7, {"revision": 2})
    assert (meter.next_ordinal, meter.report.already_committed) == (8, 1)
    again = SinkMeter("out", "x")
    again.restore(meter.snapshot())
    again.add(some, 10)
    assert again.next_ordinal == 12
    assert (again.report.marked, meter.report.marked) == ({"revision": 5}, {"revision": 2})


def test_a_result_is_in_time_if_it_left_within_the_deadline_of_its_own_stimulus() -> None:
    meter = SinkMeter("out", "x", deadline_ns=100)
    meter.add(batch(np.array([0, 899, 900, 1_000])), 1_000)
    assert (meter.report.in_time, meter.report.rows) == (2, 4)
    meter.add(batch(np.array([1_950])), 2_000)
    assert (meter.report.in_time, meter.report.rows) == (3, 5)
    again = SinkMeter("out", "x", deadline_ns=100)
    again.restore(meter.snapshot())
    again.add(batch(np.array([2_000])), 2_100)
    assert (again.report.in_time, again.report.rows) == (4, 6)


def test_without_a_deadline_no_result_is_in_time_or_late() -> None:
    meter = SinkMeter("out", "x")
    meter.add(batch(np.array([0])), 1)
    assert (meter.report.deadline_ns, meter.report.in_time, meter.report.rows) == (None, 0, 1)


def test_long_batches_of_few_stimuli_count_as_each_row_by_itself() -> None:
    rng = np.random.default_rng(1)
    stimuli = [
        np.full(9_000, 5),
        np.arange(3),
        np.repeat([7, 9, 7], 3_000),
        rng.integers(0, 9, 9_000),
    ]
    together, alone = (SinkMeter("out", "x", deadline_ns=14) for _ in range(2))
    for egress_ns, stimuli_ns in enumerate(stimuli, start=20):
        together.add(batch(stimuli_ns), egress_ns)
        for piece in np.split(stimuli_ns, range(1_000, len(stimuli_ns), 1_000)):
            alone.add(batch(piece), egress_ns)
    assert together.next_ordinal == alone.next_ordinal == sum(map(len, stimuli))
    assert together.snapshot() == alone.snapshot()

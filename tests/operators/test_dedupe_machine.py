"""Cost of deduping when more rows are known than are to be kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from slackwater.runtime.model import READY_ONLY, START_NS, Batch, GateRead
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.dedupe.machine import DedupeMachine
from slackwater.runtime.operators.dedupe.step import DedupeStep
from tests.support.told import gate_read

MOST = 1024


class Counting(DedupeMachine):
    """A machine that counts how often it goes through all that it knows."""

    looks = 0

    def _tidy(self) -> None:
        self.looks += 1
        super()._tidy()


def machine(*, within_ns: int) -> Counting:
    step = DedupeStep(
        name="once",
        inputs=("rows",),
        schema=pa.schema([("k", pa.int64())]),
        on=("k",),
        within_ns=within_ns,
        release=READY_ONLY,
    )
    return Counting(step, most_kept_rows=MOST)


def read_of(begin: int, end: int, *, frontier_ns: int) -> GateRead:
    times = np.arange(begin, end)
    batch = Batch(event_time_ns=times, stimulus_time_ns=times, columns={"k": times})
    return gate_read([batch], [None], end, 0, frontier_ns)


@pytest.mark.parametrize("is_silent", [True, False], ids=["needed by late rows", "needed by all"])
def test_beyond_the_most_a_read_costs_no_more_than_before(is_silent: bool) -> None:
    """Rows in order need the last `within`; what only late rows need is forgotten."""
    one = machine(within_ns=3000 if is_silent else 10**9)
    for begin in range(0, 8000, 10):
        frontier_ns = START_NS if is_silent else begin + 10
        assert one.work(read_of(begin, begin + 10, frontier_ns=frontier_ns), 0).rows is not None
        needed = min(begin + 10, 3000) if is_silent else begin + 10
        assert one.rows_held <= max(needed, MOST) + MOST // 8 + 10
    assert (one.dropped_early > 0) is is_silent
    assert one.looks < 2 * 8000 / (MOST / 8)


def test_forgetting_goes_on_from_a_snapshot_as_before() -> None:
    first, other = machine(within_ns=2000), machine(within_ns=2000)
    counts: list[Any] = []
    for begin in range(0, 6000, 50):
        for one in (first, other):
            one.work(read_of(begin, begin + 50, frontier_ns=START_NS), 0)
        state = save(other)
        other = machine(within_ns=2000)
        restore(other, state)
        assert (other.rows_held, other.dropped_early) == (first.rows_held, first.dropped_early)
        counts.append(first.dropped_early)
    assert counts[-1] > 0

"""The orders that stimulus order is compared with."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from benchmarks.mace.orders import FifoOrder, LongestQueue, RoundRobin
from slackwater.runtime.model import START_NS
from slackwater.runtime.model.subject import Subject

ONE = sw.schedule.StageView(Subject("one"), "sink", 40, START_NS, rows=3, came_ns=90, turn=7)
TWO = sw.schedule.StageView(Subject("two"), "sink", 55, START_NS, rows=9, came_ns=80, turn=8)
SOURCE = sw.schedule.StageView(Subject("source"), "source", 95, 10, rows=0, came_ns=95, turn=9)


@pytest.mark.parametrize(
    ("order", "chosen"),
    [(FifoOrder(), "two"), (RoundRobin(), "one"), (LongestQueue(), "source")],
    ids=repr,
)
def test_each_order_chooses_a_stage_by_its_rule(order: Any, chosen: str) -> None:
    assert order.first([SOURCE, TWO, ONE], 100).name == chosen


def test_the_longest_queue_goes_first_where_no_source_is_due() -> None:
    assert LongestQueue().first([ONE, TWO], 100) == TWO


def test_fifo_takes_the_path_whose_message_came_first() -> None:
    early = sw.schedule.PathView(
        "a→x", Subject("a"), stimulus_ns=40, came_ns=90, rows=1, messages=1
    )
    late = sw.schedule.PathView("b→x", Subject("b"), stimulus_ns=55, came_ns=80, rows=1, messages=1)
    assert FifoOrder().first_path([early, late], 100) == late

"""Links with a capacity in the simulator: how long rows take, in which order, what is free."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import batch_of
from slackwater.runtime.simulate import CostModel, LinkModel, Simulation
from slackwater.runtime.simulate.ways import Ways
from tests.support.told import message_of

MS = 1_000_000
ROW_BYTES = 32  # event time, stimulus time, and the two columns
FREE = CostModel(per_slice_ns=0, per_row_ns=0)


def rows(count: int, *, every_ns: int = 0, first_ns: int = 0) -> pa.Table:
    ts = pa.array(first_ns + np.arange(count) * every_ns, pa.timestamp("ns"))
    return pa.table({"ts": ts, "n": np.arange(count)})


def crossing(table: pa.Table) -> sw.Dataflow:
    """A source, and a gate that lets all go at once, on two nodes."""
    flow = sw.Dataflow("crossing")
    source = flow.source("a", sw.table(table), event_time="ts", arrival="ts", speed=1)
    source.merge(name="gate", slack="0s").sink("out", sw.collect_sink())
    return flow


def ran(flow: sw.Dataflow, link: LinkModel, *, cores: int = 1, **placement: str) -> JobReport:
    nodes = sw.Simulation(2, cores=cores, cost=FREE, link=link)
    return nodes.submit(flow, placement=placement).wait()


def worst_ms(report: JobReport) -> float:
    (sink,) = report.sinks
    return sink.latency.max_ns / MS


APART = {"a": "node-1", "gate": "node-2"}


def test_rows_wait_for_a_link_as_its_capacity_says() -> None:
    """100 rows at one moment and a link of a row a millisecond: the last has left after 100 ms."""
    slow = LinkModel(delay_ns=5 * MS, bytes_per_s=1_000 * ROW_BYTES)
    assert worst_ms(ran(crossing(rows(100)), slow, **APART)) == pytest.approx(105, abs=0.1)
    assert worst_ms(ran(crossing(rows(100)), LinkModel(delay_ns=5 * MS), **APART)) < 5.5


def test_a_link_is_idle_between_rows_that_come_slower_than_it_carries() -> None:
    slow = LinkModel(delay_ns=0, bytes_per_s=1_000 * ROW_BYTES)  # a row in 1 ms
    assert worst_ms(ran(crossing(rows(50, every_ns=2 * MS)), slow, **APART)) < 1.1
    behind = ran(crossing(rows(50, every_ns=MS // 2)), slow, **APART)
    assert worst_ms(behind) == pytest.approx(50 - 24.5, abs=1.1)


def test_slots_of_one_node_have_no_link_between_them() -> None:
    slow = LinkModel(delay_ns=5 * MS, bytes_per_s=1_000 * ROW_BYTES)
    here = {"a": "node-1/1", "gate": "node-1/2", "out": "node-1/2"}
    assert worst_ms(ran(crossing(rows(100)), slow, cores=2, **here)) < 5.5


def test_each_link_has_a_model_of_its_own_one_for_each_direction() -> None:
    slow = LinkModel(delay_ns=0, bytes_per_s=1_000 * ROW_BYTES)
    there = LinkModel(delay_ns=0, between={("node-1", "node-2"): slow})
    back = LinkModel(delay_ns=0, between={("node-2", "node-1"): slow})
    assert worst_ms(ran(crossing(rows(100)), there, **APART)) == pytest.approx(100, abs=0.1)
    assert worst_ms(ran(crossing(rows(100)), back, **APART)) < 0.5


class Timeline:
    """Virtual time that goes on as what is to happen happens."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._to_come: list[tuple[int, int, Callable[[], None]]] = []

    def at(self, at_ns: int, happen: Callable[[], None]) -> None:
        heapq.heappush(self._to_come, (at_ns, len(self._to_come), happen))

    def go_on(self) -> None:
        while self._to_come:
            self.now_ns, _, happen = heapq.heappop(self._to_come)
            happen()


def test_what_is_older_goes_over_a_link_first_and_each_channel_stays_in_order() -> None:
    flow = sw.Dataflow("shared")
    for name in "ab":
        source = flow.source(name, sw.table(rows(1)), event_time="ts")
        source.merge(name=f"of-{name}", slack="0s").sink(f"out-{name}", sw.collect_sink())
    there = {"of-a": "node-2", "of-b": "node-2"}
    plan = sw.Simulation(2).plan(flow, placement={"*": "node-1", **there})
    channel = {one.source: one for one in plan.channels}
    time, arrived = Timeline(), list[tuple[str, int]]()
    link = LinkModel(delay_ns=0, bytes_per_s=1_000 * 16)
    ways = Ways(plan, link, time, np.random.default_rng(1))

    def send(source: str, stimulus_ns: int) -> None:
        message = message_of(batch_of([0], {}, stimulus_ns), 0, stimulus_ns)
        arrive = partial(arrived.append, (source, stimulus_ns))
        ways.send(channel[source], message, arrive)

    send("b", 50)  # goes at once: nothing else is there
    for source, stimulus_ns in (("b", 40), ("b", 20), ("a", 30), ("a", 10)):
        send(source, stimulus_ns)
    time.go_on()
    # What stands before 10 on a's channel is as urgent as it is; then 40, for 20 is behind it.
    assert arrived == [("b", 50), ("a", 30), ("a", 10), ("b", 40), ("b", 20)]
    assert time.now_ns == 5 * MS


def test_messages_without_rows_weigh_nothing_and_none_overtakes_its_channel() -> None:
    """A ready-only merge of a source that says nothing: its promises pass behind rows."""
    flow = sw.Dataflow("promises")
    a = flow.source("a", sw.table(rows(100)), event_time="ts", arrival="ts", speed=1)
    b = flow.source("b", sw.table(rows(2, every_ns=MS)), event_time="ts", arrival="ts", speed=1)
    flow.merge(a, b, name="gate").sink("out", sw.collect_sink())
    nodes = sw.Simulation(2, cost=FREE, link=LinkModel(delay_ns=0, bytes_per_s=1_000 * ROW_BYTES))
    job = nodes.submit(flow, placement={"a": "node-1", "b": "node-1", "gate": "node-2"})
    assert job.wait().elapsed_s == pytest.approx(0.102, abs=0.001)
    assert job.result("out").num_rows == 102


def test_a_simulation_that_weighs_counts_the_bytes_of_rows_on_each_channel() -> None:
    plan = sw.Simulation(1).plan(crossing(rows(100)))
    for weighs, total in ((True, 100 * ROW_BYTES), (False, 0)):
        run = Simulation(plan, egress=lambda *_: None, weighs=weighs)
        sent = {one.source: one.bytes_sent for one in run.run().channels}
        assert sent == {"a": total, "gate": total}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"bytes_per_s": 0}, "carries nothing or anything; give a finite number above 0"),
        ({"bytes_per_s": float("inf")}, "carries nothing or anything"),
        (
            {"between": {("a", "b"): LinkModel(between={("a", "b"): LinkModel()})}},
            "has a `between` of its own",
        ),
    ],
)
def test_links_that_are_none_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        LinkModel(**settings)  # type: ignore[arg-type]


def test_a_link_of_a_node_that_is_not_there_is_refused() -> None:
    link = LinkModel(between={("node-1", "moon"): LinkModel(delay_ns=1)})
    with pytest.raises(SettingError, match="a link of node 'moon', which is not there; there are"):
        sw.Simulation(2, link=link)

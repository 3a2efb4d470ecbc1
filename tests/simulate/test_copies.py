"""A simulation runs copies of a flow's objects, made at submit as for a cluster's slots."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from tests.support.own_inputs import Feed, rows
from tests.support.own_outputs import Noting, NotingSink

N = {"n": "int64"}


class Ten:
    """Adds what it holds: a function, and an operator whose copies share the list."""

    def __init__(self) -> None:
        self.held = [10]
        self.due_ns = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        self.held.append(row["t"])
        return {"n": row["t"] + self.held[0]}

    def on_rows(self, key: int, rows: Any) -> list[dict[str, Any]]:
        self.held.append(key)
        return [{"n": key + self.held[0]} for _ in rows]


def by_function(stream: sw.Stream, ten: Ten) -> sw.Stream:
    return stream.map_rows(ten, N, name="ten")


def by_operator(stream: sw.Stream, ten: Ten) -> sw.Stream:
    return stream.key_by("t").process(ten, N, within="1s", name="ten")


@pytest.mark.parametrize("by", [by_function, by_operator])
def test_what_a_function_keeps_or_its_user_changes_after_submit_has_no_effect(by: Any) -> None:
    blocks, ten = [rows(1, 2)], Ten()
    flow = sw.Dataflow("copies")
    numbers = flow.source("numbers", Feed(lambda: iter(blocks)), event_time="t")
    by(numbers, ten).sink("out", sw.collect_sink())
    host = sw.Simulation(nodes=2)
    jobs = [host.submit(flow), host.submit(flow)]
    ten.held[0] = 20
    blocks.append(rows(3, 2))
    for job in jobs:
        assert job.result("out")["n"].to_pylist() == [11, 12]
    assert ten.held == [20]
    assert host.submit(flow).result("out")["n"].to_pylist() == [21, 22, 23, 24]


def test_a_class_of_the_program_is_as_it_was_after_a_run() -> None:
    opened: list[str] = []

    class Own(Noting):
        def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> NotingSink:
            opened.append(context.sink)
            return super().open(schema, context)

    class Numbers(Feed):
        def open(self) -> Any:
            opened.append("copied")
            return super().open()

    methods = Own.open, Numbers.open
    flow = sw.Dataflow("own")
    numbers = flow.source("numbers", Numbers(lambda: iter([rows(1, 2)])), event_time="t")
    numbers.sink("out", Own())
    job = sw.Simulation().submit(flow)
    assert job.wait().state == "done"
    assert opened == ["out"], "the input and its class are copies, the output is none"
    assert methods == (Own.open, Numbers.open)


def test_an_output_is_its_users_object_and_shows_what_it_got() -> None:
    batches: list[pa.RecordBatch] = []
    flow = sw.Dataflow("shared")
    numbers = flow.source("numbers", sw.table({"t": [1, 2]}), event_time="t")
    numbers.sink("out", sw.callback_sink(batches.append))
    sw.Simulation(nodes=1).submit(flow).wait()
    assert pa.Table.from_batches(batches)["t"].to_pylist() == [1, 2]

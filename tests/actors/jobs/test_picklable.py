"""What of a flow cannot be sent to its slots is named, before anything is started."""

from __future__ import annotations

import pickle
import sqlite3
import threading
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.actors.jobs.picklable import pickled
from slackwater.runtime.errors import FlowError, SlackwaterError
from slackwater.runtime.schedule import StimulusOrder
from tests.support.closings import EndAndAWhile


class Locked(StimulusOrder):
    def __init__(self) -> None:
        self.lock = threading.Lock()


def flow_of(function: Any) -> sw.Dataflow:
    flow = sw.Dataflow("sent")
    numbers = flow.source(
        "numbers", sw.table({"ts": pa.array([1], pa.timestamp("ns"))}), event_time="ts"
    )
    numbers.sink("calls", sw.callback_sink(function))
    return flow


def test_an_output_or_an_order_that_does_not_pickle_is_named_with_the_way_out() -> None:
    lock = threading.Lock()
    plan = sw.Simulation().plan(flow_of(lambda _: lock.acquire()))
    said = r"flow 'sent' cannot be sent .* the output of sink 'calls' .* does not pickle .*lock"
    with pytest.raises(FlowError, match=said + r".*keep open files, connections and locks out"):
        pickled(plan)
    plan = sw.Simulation().plan(flow_of(print), limits=sw.Limits(order=Locked()))
    with pytest.raises(FlowError, match=r"Limits\(order=\) \(Locked\) does not pickle"):
        pickled(plan)
    assert pickled(replace(plan, limits=sw.Limits()))


def test_a_predictor_that_does_not_pickle_is_named() -> None:
    lock = threading.Lock()
    plan = sw.Simulation().plan(flow_of(print))
    with pytest.raises(FlowError, match=r"Tuning\(predictor=\) .* does not pickle"):
        pickled(replace(plan, tuning=sw.Tuning(predictor=lambda _: lock)))


class Connected:
    """Hold a connection."""

    def __init__(self) -> None:
        self.base = sqlite3.connect(":memory:")
        self.due_ns = None

    def known(self, columns: Any) -> dict[str, Any]:
        return {"n": columns["n"]}

    def on_rows(self, key: Any, rows: Any) -> list[dict[str, Any]]:
        return [{"n": key + len(rows)}]


class Unreadable(Connected):
    """Pickles, and cannot be made from the pickle."""

    def __init__(self) -> None:
        self.due_ns = None

    def __setstate__(self, state: Any) -> None:
        raise ValueError("no base here")


class ByLock(EndAndAWhile):
    """Closes windows under a lock."""

    def __init__(self) -> None:
        object.__setattr__(self, "lock", threading.Lock())


def locked(rows: sw.Stream) -> sw.Stream:
    lock = threading.Lock()

    def own(row: Any) -> dict[str, Any]:
        with lock:
            return {"n": row["n"]}

    return rows.map_rows(own, {"n": "int64"}, name="own")


def counts(rows: sw.Stream, close: Any) -> sw.Stream:
    return rows.aggregate(window=sw.tumbling("1s"), n=sw.count(), close=close, name="counts")


N = {"n": "int64"}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            locked,
            r"the function of step 'own' \(locked.<locals>.own\) .* because of 'lock', a lock",
        ),
        (
            lambda rows: rows.map_batches(Connected().known, N, name="known"),
            r"the function of step 'known' \(Connected.known\) .* because of 'self', a Connected",
        ),
        (
            lambda rows: rows.key_by("n").process(Connected, N, within="1s", name="each"),
            r"the operator of step 'each' \(Connected\) .* because of 'base', a Connection",
        ),
        (
            lambda rows: rows.map_batches(Unreadable().known, N, name="known"),
            r"the function of step 'known' .* because of 'self', a Unreadable .*no base here",
        ),
        (
            lambda rows: counts(rows, ByLock()),
            r"the close of step 'counts' .* does not pickle",
        ),
    ],
)
def test_the_simulator_refuses_what_a_cluster_cannot_send(made: Any, said: str) -> None:
    flow = sw.Dataflow("sent")
    data = sw.table({"ts": pa.array([1], pa.timestamp("ns")), "n": [1]})
    made(flow.source("numbers", data, event_time="ts")).sink("out", sw.collect_sink())
    with pytest.raises(FlowError, match=said + ".*make them where it runs"):
        sw.Simulation().submit(flow)


def test_an_operator_that_cannot_be_copied_is_named() -> None:
    flow = sw.Dataflow("predicted")
    data = sw.table({"ts": pa.array([1], pa.timestamp("ns")), "n": [1]})
    rows = flow.source("numbers", data, event_time="ts")
    rows.key_by("n").process(Connected, N, within="1s", name="each").sink("o", sw.collect_sink())
    with pytest.raises(SlackwaterError, match=r"step 'each': .*cannot pickle"):
        sw.Simulation().predict(flow, rates=10.0)


def test_a_table_in_short_blocks_takes_its_own_size_not_that_for_each_block() -> None:
    text = pa.array([None, "a", "bcd", ""] * 2_500).dictionary_encode()
    table = pa.table({"ts": range(10_000), "text": text, "nested": [[1], [], None, [2, 3]] * 2_500})
    flow = sw.Dataflow("sent")
    flow.source("rows", sw.table(table, batch_rows=10), event_time="ts").sink(
        "out", sw.collect_sink()
    )
    data = pickled(sw.Simulation().plan(flow))
    assert len(data) < 20 * table.nbytes
    step = pickle.loads(data).stages[0].step  # noqa: S301 (our own)
    assert pa.Table.from_batches(step.source.input.parts).equals(table)

"""What of a flow cannot be sent to its slots is named, before anything is started."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from actors.jobs.picklable import pickled
from runtime.errors import FlowError
from runtime.schedule import StimulusOrder


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
    with pytest.raises(FlowError, match=said + r".*Keep open files, connections and locks out"):
        pickled(plan)
    plan = sw.Simulation().plan(flow_of(print), limits=sw.Limits(order=Locked()))
    with pytest.raises(FlowError, match=r"Limits\(order=\) \(Locked\) does not pickle"):
        pickled(plan)
    assert pickled(replace(plan, limits=sw.Limits()))

"""What travels to a tuner. What it does is in tests/system/test_deadline.py."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.actors.tuning.tuner import Tuner
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.control.loop import Tell
from slackwater.runtime.model import READY_ONLY
from slackwater.runtime.tune import make_policy
from tests.support.flows import late_pair
from tests.support.rules import release


def test_only_the_graph_travels_no_input_and_no_function_of_the_user() -> None:
    flow = late_pair("late", seconds=60, deadline="1s")
    columns = {"ts": pa.timestamp("ns"), "n": "int64"}
    numbers = flow.source("more", sw.table(pa.table({"ts": [1], "n": [2]})), event_time="ts")
    for name in ("one", "two"):  # two readers: so each of them is a stage of its own
        mapped = numbers.map_batches(lambda rows: rows, schema=columns, name=name)
        mapped.filter(sw.col("n") > 1).sink(
            f"calls {name}", sw.callback_sink(lambda rows: rows.num_rows)
        )
    with sw.Simulation(2) as nodes:
        plan = nodes.plan(flow)
    sent = pickle.dumps(FlowGraph.of(plan))  # which knows no lambda
    assert len(sent) < 10_000
    graph = pickle.loads(sent)  # noqa: S301 our own
    policies = [make_policy(one, sw.Tuning()) for one in (FlowGraph.of(plan), graph)]
    assert [part.subject for part in graph.parts] == [stage.subject for stage in plan.stages]
    assert graph.slots == dict(plan.slots)
    first, second = (one.begin() for one in policies if one is not None)
    assert first == second != []


class DeadLine:
    """A slot whose calls cannot even be sent."""

    @property
    def call(self) -> Any:
        raise ConnectionError("the tuner dies here")


def test_a_slack_counts_as_set_only_once_it_was_sent() -> None:
    with sw.Simulation(1) as nodes:
        graph = FlowGraph.of(nodes.plan(late_pair("late", seconds=1, deadline="1s")))
    tuner = Tuner(graph, sw.Tuning(policy="500ms"))
    tuner._slots = dict.fromkeys(graph.slot_names, DeadLine())
    with pytest.raises(ConnectionError):
        tuner._perform([Tell(graph.slots["gate"], release("gate", 5), (0, 1))])
    (gate,) = tuner.state(0).report.gates
    assert (gate.rule, gate.by) == (READY_ONLY, "")  # so the next tuner will set it
    tuner._is_over.set()
    tuner.start({})

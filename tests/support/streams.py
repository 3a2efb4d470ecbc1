"""Streams to build on: two sources that are never opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.plan.graph import order_steps
from slackwater.runtime.plan.step import Step
from slackwater.runtime.sources.spec import SourceReader

BUS = {"ts": "timestamp[ms]", "area": "int32", "speed": "double", "line": "string"}
LOOP = {"ts": "timestamp[ms]", "area": "int64", "flow": "int64", "on": "bool"}
TIMES = pa.timestamp("ns")


class FakeInput:
    """An input that has columns and is never opened."""

    def __init__(self, columns: dict[str, str] | pa.Schema) -> None:
        self._schema = (
            columns
            if isinstance(columns, pa.Schema)
            else pa.schema([(name, _type(kind)) for name, kind in columns.items()])
        )

    def describe(self) -> str:
        return f"a table of {len(self._schema)} columns"

    def schema(self) -> pa.Schema:
        return self._schema

    def open(self) -> SourceReader:
        raise NotImplementedError


def _type(kind: str) -> pa.DataType:
    return pa.timestamp("ms") if kind == "timestamp[ms]" else pa.type_for_alias(kind)


def flow_with_streams(**settings: Any) -> tuple[sw.Dataflow, sw.Stream, sw.Stream]:
    flow = sw.Dataflow("congestion", **settings)
    buses = flow.source("buses", FakeInput(BUS), event_time="ts")
    loops = flow.source("loops", FakeInput(LOOP), event_time="ts")
    return flow, buses, loops


def step_of(stream: sw.Stream) -> Any:
    return stream.flow.steps[stream.name]


def types(stream: sw.Stream) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in stream.schema}


def message(error: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def flow_of_steps(name: str, steps: Iterable[Step], **settings: Any) -> sw.Dataflow:
    """A flow of steps made elsewhere, in any order; it is checked as it is put in order."""
    flow = sw.Dataflow(name, **settings)
    flow._steps = list(order_steps(steps).values())
    return flow

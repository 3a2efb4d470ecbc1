"""The base of streams for the methods that operators add: flow, columns, a new step.

`runtime/flow/stream.py` has the stream that users know, which has all of those methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypedDict

import pyarrow as pa

from slackwater.runtime.errors import FlowError, TypeMismatch
from slackwater.runtime.model import Release
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.flow_builder import FlowBuilder
from slackwater.runtime.other_names import SaysItHasNoParts
from slackwater.runtime.plan.slack import Slack
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.traits import Replicas
from slackwater.runtime.shown import shown

Names = str | Sequence[str]


class GateSettings(TypedDict):
    """Settings of a step's gate: fields of the step."""

    release: Release
    replicas: Replicas


class AnyStream(SaysItHasNoParts):
    """A stream is what leaves one step of a flow."""

    _called = "a stream"
    _place = "stream"

    def __init__(self, flow: FlowBuilder, step: Step) -> None:
        self.flow = flow
        self.name = step.name
        self.schema: pa.Schema = step.schema

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.type}" for field in self.schema)
        return f"<{type(self).__name__} {self.name!r} ({columns})>"

    def _way_out_of(self, name: str) -> str:
        schema = vars(self).get("schema", ())
        return f"write sw.col({name!r})" if name in schema.names else super()._way_out_of(name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.schema.names)

    @property
    def _in(self) -> tuple[str, ...]:
        return (self.name,)

    def _add(self, step: Step) -> Self:
        self.flow.put(step)
        return type(self)(self.flow, step)

    def _gate(
        self, slack: Slack, replicas: Replicas, keys: tuple[str, ...], *, step: str
    ) -> GateSettings:
        """Return the settings of the gate of a step that keeps rows of its keys.

        Raises:
            FlowError: several replicas have no keys to share.
            SettingError: `replicas` or `slack` is out of range.
        """
        checks.replicas(replicas, keys=keys, step=step)
        return {"release": self.flow.release_of(slack, step=step), "replicas": replicas}

    def _step_name(self, kind: str, name: Any) -> str:
        """Return the step's name; refuse a `name=` that was meant for a column."""
        if name is not None and (not isinstance(name, str) or name in self.columns):
            raise FlowError(
                f"{kind} on {self.name!r}: name={name!s} would name the step; for a column called "
                "'name' write {'name': ...} as the first argument"
            )
        return self.flow.name_for(kind, name)


@dataclass(frozen=True)
class Keyed(SaysItHasNoParts):
    """A stream and the columns that tell its rows apart."""

    _called = "a stream with keys, made last before an operator,"
    _place = "keyed stream"

    stream: AnyStream
    keys: tuple[str, ...]


def check_own(flow: FlowBuilder, stream: Any, *, step: str) -> None:
    """Check that a stream belongs to this flow.

    Raises:
        FlowError: it does not.
        TypeMismatch: it is no stream.
    """
    if isinstance(stream, Keyed):
        raise TypeMismatch(
            f"step {step!r}: {stream.stream.name!r} is keyed; key both streams of a join by "
            "key_by, or none; a merge takes none that is keyed"
        )
    if not isinstance(stream, AnyStream):
        raise TypeMismatch(
            f"step {step!r}: {shown(stream, 60)} is not a stream; make one of an input: "
            "flow.source('name', input, event_time='ts')"
        )
    if stream.flow is not flow:
        raise FlowError(
            f"step {step!r}: stream {stream.name!r} belongs to dataflow "
            f"{stream.flow.name!r}, not to {flow.name!r}; build both in one flow"
        )


def names_of(given: Names | None) -> tuple[str, ...]:
    """Return column names as a tuple, also for a single name; None: no names."""
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        return (given,)
    return tuple(given)

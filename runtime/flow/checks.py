"""Checks of sources and sinks, on the call that makes them."""

from __future__ import annotations

from inspect import isfunction
from typing import Any

import pyarrow as pa

from slackwater.runtime.errors import FlowError, SchemaError, SettingError, TypeMismatch
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model.schema import inside_schema
from slackwater.runtime.operators.ground.checks import no_function, unique_columns
from slackwater.runtime.shown import a_kind, shown
from slackwater.runtime.sinks.named_sink import called_by_name as called_of_output
from slackwater.runtime.sinks.output import Output, SinkTraits
from slackwater.runtime.sources.columns import check_source_columns
from slackwater.runtime.sources.named_reader import called_by_name
from slackwater.runtime.sources.spec import Input, SourceSpec


def outside_schema(step: str, given: Input) -> pa.Schema:
    """Return the columns that an input says it has.

    Raises:
        IngestError: its `schema` raised; names the source, the class and the line.
        SchemaError: what it returned is not a schema.
    """
    outside = called_by_name(step, given, "schema")
    if not isinstance(outside, pa.Schema):
        raise SchemaError(
            f"source {step!r}: {type(given).__qualname__}.schema returned "
            f"{a_kind(outside)}; it must return a pyarrow.Schema"
        )
    return outside


def source_schema(step: str, spec: SourceSpec) -> pa.Schema:
    """Return the columns that a source sends.

    Raises:
        SchemaError: a column does not fit its role.
        DuplicateName: two columns have one name.
        SettingError: time_unit is none of the four.
        TypeMismatch: the promise is not a time, or the input is described by no text.
        IngestError: the input's `schema` or `describe` raised; names the source, the class and
            the line.
    """
    outside = outside_schema(step, spec.input)
    described = called_by_name(step, spec.input, "describe")
    if not isinstance(described, str):
        raise TypeMismatch(
            f"source {step!r}: {type(spec.input).__qualname__}.describe returned "
            f"{a_kind(described)}; it must return a few words"
        )
    unique_columns(outside.names, step=step, way_out="rename one before it is read")
    schema = inside_schema(outside, source=step)
    promise: object = spec.promise
    if promise is not None and not isinstance(promise, Expr):
        raise TypeMismatch(
            f"source {step!r}: promise={shown(promise)} is not an expression of a time; write "
            "promise=sw.col('heard') - sw.duration('30s')"
        )
    check_source_columns(step, spec, schema, schema.names)
    if spec.time_unit not in (None, "ns", "us", "ms", "s"):
        raise SettingError(
            f"source {step!r}: time_unit={shown(spec.time_unit)} must be 'ns', 'us', 'ms' or 's'"
        )
    if isinstance(spec.event_time, Expr):
        no_function(spec.event_time, step=step, what="event_time=")
        if not spec.event_time.columns():
            raise FlowError(
                f"source {step!r}: event_time={spec.event_time!s} names no column of the input; "
                f"there are: {', '.join(schema.names)}"
            )
    if promise is not None:
        no_function(promise, step=step, what="promise")
        kind = promise.as_operand(schema, step=step).type
        if not (pa.types.is_timestamp(kind) or kind == pa.int64()):
            raise TypeMismatch(
                f"source {step!r}: promise {promise!s} has type {kind}, and a promise is a "
                "timestamp or int64 nanoseconds; .cast('int64') it"
            )
    return schema


def output(given: Any, *, step: str) -> None:
    """Check that an object is an output.

    Raises:
        TypeMismatch: it is not an output; says what an output is.
        SinkError: its `describe` raised; names the sink, the class and the line.
    """
    rule = (
        "an output is parquet_sink('out/'), say, or of a custom class of sw.connectors.Output with "
        "describe() and open(schema, context)"
    )
    if isinstance(given, type):
        raise TypeMismatch(
            f"sink {step!r}: {given.__qualname__} is a class, and {rule}; make one: "
            f"{given.__qualname__}(…)"
        )
    if not isinstance(given, Output):
        hint = rule
        if isfunction(given):
            hint = f"call it: {given.__name__}(…)"
        elif hasattr(given, "describe"):
            hint = (
                f"write class {type(given).__name__}(sw.connectors.Output), and what its open "
                "returns as a class of sw.connectors.Sink with write(rows, first_ordinal)"
            )
        raise TypeMismatch(f"sink {step!r}: {shown(given, 60)} is not an output; {hint}")
    if not isinstance(given.traits, SinkTraits):
        raise TypeMismatch(
            f"sink {step!r}: {type(given).__qualname__}.traits is {a_kind(given.traits)}; "
            "it must be a value such as sw.connectors.SinkTraits(resumes=True)"
        )
    described = called_of_output(step, given, "describe")
    if not isinstance(described, str):
        raise TypeMismatch(
            f"sink {step!r}: {type(given).__qualname__}.describe returned "
            f"{a_kind(described)}; it must return a few words"
        )

"""Stream under construction: every method adds a step and returns its stream.

No step runs here. Each call checks names, columns and types at once, so an error points at
the line that is wrong. Most methods belong to operators, each in its folder (`runtime/operators/`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from html import escape
from inspect import signature
from typing import Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import DuplicateName, FlowError, TypeMismatch
from slackwater.runtime.flow import checks
from slackwater.runtime.model.diverted import DIVERTED_SCHEMA
from slackwater.runtime.operators.ground.checks import key_types
from slackwater.runtime.operators.ground.streams import Keyed
from slackwater.runtime.plan.changes import carried_by
from slackwater.runtime.plan.event_time_type import event_time_type
from slackwater.runtime.plan.step import NO_LATE, GatedStep, Side
from slackwater.runtime.plan.steps import DivertedStep, LateStep, SinkStep
from slackwater.runtime.registry.operators import StreamMethods
from slackwater.runtime.sinks.output import Output

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


class Stream(StreamMethods):
    """Stream that leaves one step. May feed any number of steps, even one twice."""

    @checked_call
    def key_by(self, *keys: str) -> KeyedStream:
        """Name the key columns of the next aggregate or join. Adds no step.

        Raises:
            ColumnError, TypeMismatch: a key is missing, or is a list, struct or map.
        """
        if not keys:
            raise FlowError(f"key_by on {self.name!r} needs a column, such as key_by('area')")
        if any(isinstance(key, list | tuple) for key in keys):
            raise TypeMismatch(f"key_by on {self.name!r} takes names: key_by('area', 'line')")
        key_types(self.schema, keys, step=self.name)
        return KeyedStream(self, keys)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(field.name)}</td><td>{escape(str(field.type))}</td></tr>"
            for field in self.schema
        )
        caption = f"stream {self.name!r} of {self.flow.name!r}"
        return f"<table><caption>{escape(caption)}</caption>{rows}</table>"

    @checked_call
    def late(self, side: Side | None = None, *, name: str | None = None) -> Stream:
        """Return a stream of the rows that came too late to count in full.

        The step is a join, an aggregate, a pattern, followed_by or process.

        Args:
            side: side of a join: the rows of its "left" or "right" with all their columns; None:
                the keys of both.
            name: name of the step.

        The stream has the columns of those rows, and `late_step`, `late_side` (of a join),
        `late_event_time`, `late_by_ns`, and `late_dropped`: false for a row that missed only some
        of its windows or partners. The event time of a row is when it was found late. Of an input
        that changes, rows are those of the changelog, and `late_change` says what each did:
        "insert", "update", "delete", or "old" for a row that the next replaced.

        Raises:
            FlowError: this stream comes from a step of another kind, or a side is given and the
                step is not a join.
            DuplicateName: a column has one of these names already.
        """
        name = self.flow.name_for("late", name)
        steps = self.flow.steps
        gated = steps[self.name]
        if not isinstance(gated, GatedStep):
            raise FlowError(NO_LATE.format(who=name, of=self.name))
        inputs = [steps[source].schema for source in gated.inputs]
        ports = gated.late_columns(inputs, side=side, who=name)
        fields = _fields(ports, inputs)
        ours = {"late_step": pa.string()}
        if len(ports) > 1:
            ours["late_side"] = pa.string()
        time = event_time_type(steps, gated.inputs)
        ours |= {"late_event_time": time, "late_by_ns": pa.int64(), "late_dropped": pa.bool_()}
        if any(carried_by(steps, source).changes != "none" for source in gated.inputs):
            ours["late_change"] = pa.string()
        for column in ours:
            if column in fields:
                raise DuplicateName(
                    f"step {name!r}: a late row has a column {column!r} already; rename it before "
                    f"{self.name!r} with .select(...)"
                )
        schema = pa.schema([*fields.items(), *ours.items()])
        return self._add(LateStep(name=name, inputs=self._in, schema=schema, columns=ports))

    @checked_call
    def diverted(self, *, name: str | None = None) -> Stream:
        """Return a stream of the rows that the step of this stream could not use.

        The step has `on_bad="divert"` (a source, or its file) or `on_error="divert"`. The stream
        has the columns `step`, `error`, `row` (a record as it came, or the row as JSON), `file`
        and `line` (null where they are not known). Such a row's event time is what the step had
        promised when the row was found.

        Args:
            name: name of the step.

        Raises:
            FlowError: the step diverts nothing.
        """
        name = self.flow.name_for("diverted", name)
        if not self.flow.steps[self.name].traits.diverts:
            raise FlowError(
                f"step {name!r}: {self.name!r} diverts no rows; write on_bad='divert' at a source "
                "or its file, or on_error='divert' at a user's function"
            )
        return self._add(DivertedStep(name=name, inputs=self._in, schema=DIVERTED_SCHEMA))

    @checked_call
    def sink(self, name: str, output: Output, *, ordered: bool = True) -> None:
        """Write the rows to an output, one of ours or a custom one (`Output`).

        Where rows change, they have a column `change` there: "insert", "update" or "delete". A row
        that an update replaces is not written again.

        Args:
            name: name of the sink.
            output: parquet_sink(path), jsonl_sink, csv_sink, print_sink, callback_sink,
                collect_sink, or an `Output` of a custom class.
            ordered: whether rows of a step with `replicas=` are put into one order. False: each
                leaves as it comes, in an order that differs from run to run; into a folder of
                files each replica writes parts of its own.

        Raises:
            DuplicateName: rows of this stream change, and a column is called "change".
            TypeMismatch: `output` is not an output.
            SinkError: its `describe` raised; names the sink, the class and the line.
            FlowError: a step has this name, or the sink's options cannot be fulfilled here.
        """
        name = self.flow.name_for("sink", name)
        checks.output(output, step=name)
        shown = self._with_kinds(name)
        self._add(
            SinkStep(
                name=name, inputs=shown._in, schema=shown.schema, output=output, ordered=ordered
            )
        )


def _by_keys(
    method: Callable[Concatenate[Stream, P], R],
) -> Callable[Concatenate[KeyedStream, P], R]:
    """Return a method of a stream as one of a keyed stream, which binds `by=`."""

    @wraps(method)
    def call(keyed: KeyedStream, /, *args: P.args, **kwargs: P.kwargs) -> R:
        _refuse(kwargs, "by", of=keyed, method=method.__name__)
        of_stream = getattr(keyed.stream, method.__name__)  # a subclass may have its own
        result: R = of_stream(*args, **{**kwargs, "by": keyed.keys})
        return result

    return _without(call, "by")


def _on_keys(
    method: Callable[Concatenate[Stream, Stream, P], R],
) -> Callable[Concatenate[KeyedStream, KeyedStream, P], R]:
    """Return a join of streams as one of keyed streams."""
    names = ("on", "left_on", "right_on")

    @wraps(method)
    def call(left: KeyedStream, other: KeyedStream, *args: P.args, **kwargs: P.kwargs) -> R:
        if not isinstance(other, Keyed):
            raise TypeMismatch(
                f"{method.__name__} on {left.stream.name!r} after key_by takes a stream after "
                f"key_by, not {other!r}; write other.key_by(...), or {method.__name__} before "
                "key_by with on="
            )
        given = {**kwargs, **dict(zip(names, args, strict=False))}
        for name in names:
            _refuse(given, name, of=left, method=method.__name__)
        of_stream = getattr(left.stream, method.__name__)
        keys = {"left_on": left.keys, "right_on": other.keys}
        result: R = of_stream(other.stream, **{**kwargs, **keys})
        return result

    return _without(call, *names)  # type: ignore[return-value]  # other= may be written, too


def _without(call: Callable[Q, R], *names: str) -> Callable[Q, R]:
    """Return a function whose signature does not show these options."""
    shown = signature(call)
    options = [parameter for name, parameter in shown.parameters.items() if name not in names]
    call.__signature__ = shown.replace(parameters=options)  # type: ignore[attr-defined]
    return call


def _refuse(given: Mapping[str, object], name: str, *, of: KeyedStream, method: str) -> None:
    if name not in given:
        return
    way_out = f"omit {name}=, or write {method} before key_by"
    if not isinstance(given[name], str | Sequence):  # a result column of that name
        way_out = f"for a column called {name!r} write {{{name!r}: …}} as the first argument"
    raise FlowError(
        f"{method} on {of.stream.name!r} after key_by({', '.join(map(repr, of.keys))}) has its "
        f"keys; {way_out}"
    )


class KeyedStream(Keyed):
    """Stream with its key columns, which its operators work by."""

    stream: Stream

    aggregate = _by_keys(Stream.aggregate)
    asof = _on_keys(Stream.asof)
    followed_by = _by_keys(Stream.followed_by)
    join = _on_keys(Stream.join)
    over = _by_keys(Stream.over)
    pattern = _by_keys(Stream.pattern)
    process = _by_keys(Stream.process)
    top_k = _by_keys(Stream.top_k)
    newest = _by_keys(Stream.newest)
    oldest = _by_keys(Stream.oldest)
    silence = _by_keys(Stream.silence)
    to_table = _by_keys(Stream.to_table)


def _fields(
    ports: Sequence[Mapping[str, str] | None], inputs: Sequence[pa.Schema]
) -> dict[str, pa.DataType]:
    columns, schema = next(
        (columns, schema) for columns, schema in zip(ports, inputs, strict=True) if columns
    )
    return {leaves: schema.field(came).type for leaves, came in columns.items()}

"""Sink of a custom output, whose errors name the sink and the class."""

from __future__ import annotations

import inspect
from numbers import Integral
from typing import Any

import pyarrow as pa

from slackwater.runtime.errors import SinkError
from slackwater.runtime.model.whose_code import RUNNING, let_ctrl_c_pass, raised, where_raised
from slackwater.runtime.shown import a_kind, shown
from slackwater.runtime.shown_rows import batch_shown
from slackwater.runtime.sinks.output import Output, OutputContext, Sink, SinkProgress

__all__ = ["called_by_name", "open_named"]

_SAMPLE_ROWS = 3


def open_named(output: Output, schema: pa.Schema, context: OutputContext) -> Sink:
    """Open an output as a sink whose errors name it.

    Raises:
        SinkError: it cannot be opened, or a custom one did not return a sink.
    """
    if output.traits.is_named:
        return output.open(schema, context)
    return _NamedSink(output, schema, context)


class _NamedSink(Sink):
    """Opens a custom output, and passes calls on.

    Each raises SinkError if the user's method raised: it names the sink, the class and the line,
    and has the user's traceback.
    """

    def __init__(self, output: Output, schema: pa.Schema, context: OutputContext) -> None:
        self._name, self._resumes, self._context = context.sink, output.traits.resumes, context
        self._sink: Sink = called_by_name(self._name, output, "open", schema, context)
        if method := _never_run(self._sink):
            raise SinkError(
                f"sink {self._name!r}: {type(self._sink).__qualname__}.{method} is async or a "
                "generator, so a call does not run it; write a plain method that has done its work "
                "when it returns"
            )
        if reason := _no_sink(self._sink):
            raise SinkError(
                f"sink {self._name!r}: {type(output).__qualname__}.open returned {reason}; "
                "write that as a class of sw.connectors.Sink with write(rows, first_ordinal); "
                "last_ordinal, end, flush, commit, close and abort(error) have defaults"
            )

    def last_ordinal(self) -> int:
        last = self._call("last_ordinal")
        if isinstance(last, Integral) and not isinstance(last, bool):
            last = int(last)  # of NumPy, say
        who = f"sink {self._name!r}: {type(self._sink).__qualname__}.last_ordinal returned"
        if type(last) is not int or last < -1:
            raise SinkError(
                f"{who} {shown(last)}; it must return the ordinal of the last committed row, a "
                "whole number, or -1 if no row is committed"
            )
        if last >= 0 and not self._resumes:
            raise SinkError(
                f"{who} {last:,}, and its output does not say that it resumes; give the output "
                "traits = sw.connectors.SinkTraits(resumes=True), so that the flow is checked, or "
                "return -1"
            )
        run = self._context.run
        if last >= 0 and run.fingerprint is None and self._context.at is None:
            raise SinkError(
                f"{who} {last:,}, the rows of an earlier run, and none can go on with this one: "
                f"{run.why_not}; write to another place, or remove the rows there"
            )
        return last

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:
        try:
            called_by_name(self._name, self._sink, "write", rows, first_ordinal)
        except SinkError as problem:
            sample = batch_shown(rows, _SAMPLE_ROWS)
            raise SinkError(f"{problem}\nsample of the batch: {sample}") from problem.__cause__

    def end(self) -> None:
        self._call("end")

    def flush(self) -> None:
        self._call("flush")

    def commit(self) -> None:
        self._call("commit")

    def position(self) -> bytes | None:
        at = self._call("position")
        if at is not None and type(at) is not bytes:
            raise SinkError(
                f"sink {self._name!r}: {type(self._sink).__qualname__}.position returned "
                f"{shown(at)}; it must return bytes, which its output is opened at, or None"
            )
        return at

    def close(self) -> None:
        self._call("close")

    def abort(self, error: str) -> None:
        self._call("abort", error)

    def progress(self) -> SinkProgress | None:
        progress = self._call("progress")
        if progress is not None and not isinstance(progress, SinkProgress):
            raise SinkError(
                f"sink {self._name!r}: {type(self._sink).__qualname__}.progress returned "
                f"{shown(progress)}; it must return an sw.connectors.SinkProgress, or None"
            )
        return progress

    def _call(self, method: str, *given: Any) -> Any:
        return called_by_name(self._name, self._sink, method, *given)


_VERBS = (
    "write",
    "end",
    "flush",
    "commit",
    "position",
    "close",
    "abort",
    "last_ordinal",
    "progress",
)


def _never_run(given: object) -> str:
    """Return a method that a call would not run; "" if none."""
    for name in _VERBS:
        method = getattr(given, name, None)
        if any(
            asks(method)
            for asks in (
                inspect.iscoroutinefunction,
                inspect.isgeneratorfunction,
                inspect.isasyncgenfunction,
            )
        ):
            return name
    return ""


def _no_sink(given: object) -> str:
    """Return what is wrong with a user's sink; "" if nothing is."""
    kind = a_kind(given)
    if not isinstance(given, Sink):
        return f"{kind}, which is not a sink"
    try:
        inspect.signature(given.write).bind(None, 0)
    except TypeError:
        return f"{kind}, whose write does not take (rows, first_ordinal)"
    return ""


def called_by_name(sink: str, of: object, method: str, *given: Any) -> Any:
    """Call a method of an output or its sink; errors name the sink.

    Args:
        sink: name of the sink.
        of: the output or its open sink.
        method: name of the method.
        given: arguments of the method.

    Raises:
        SinkError: the method raised, `sys.exit()` included.
    """
    token = RUNNING.set(sink)
    try:
        return getattr(of, method)(*given)
    except BaseException as problem:
        let_ctrl_c_pass(problem)
        at, lines = where_raised(problem)
        raise SinkError(
            f"sink {sink!r}: {type(of).__qualname__}.{method} {raised(problem)}{at}; mend it "
            f"there\n{lines}"
        ) from problem
    finally:
        RUNNING.reset(token)

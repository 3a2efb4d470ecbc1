"""Writer of a custom output, whose errors name the sink and the class."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from slackwater.runtime.errors import SinkError
from slackwater.runtime.model.whose_code import RUNNING, let_ctrl_c_pass, raised, where_raised
from slackwater.runtime.shown_rows import batch_shown
from slackwater.runtime.sinks.output import Output, OutputContext, SinkWriter

__all__ = ["NamedWriter", "called_by_name"]

_METHODS = ("write", "close", "abort")
_SAMPLE_ROWS = 3


class NamedWriter:
    """Opens an output, and writes to it.

    Args:
        output: the output to open.
        schema: of its rows.
        context: its sink and folder.

    Raises:
        SinkError: `open` raised, or returned no writer; names the sink, the class and the line,
            with the user's traceback.
    """

    def __init__(self, output: Output, schema: pa.Schema, context: OutputContext) -> None:
        self._sink = context.sink
        self._writer: SinkWriter = called_by_name(self._sink, output, "open", schema, context)
        missing = [name for name in _METHODS if not callable(getattr(self._writer, name, None))]
        if missing:
            raise SinkError(
                f"sink {self._sink!r}: {type(output).__qualname__}.open returned a "
                f"{type(self._writer).__name__}, which has no {missing[0]}; it must return an "
                "object with write(rows), close() and abort(error)"
            )

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows.

        Raises:
            SinkError: `write` raised; as for opening, with the first of the rows.
        """
        try:
            called_by_name(self._sink, self._writer, "write", rows)
        except SinkError as problem:
            sample = batch_shown(rows, _SAMPLE_ROWS)
            raise SinkError(f"{problem}\nsample of the batch: {sample}") from problem.__cause__

    def close(self) -> None:
        """Close the writer.

        Raises:
            SinkError: `close` raised; as for opening.
        """
        called_by_name(self._sink, self._writer, "close")

    def abort(self, error: str) -> None:
        """Abort the writer after a failure.

        Raises:
            SinkError: `abort` raised; as for opening.
        """
        called_by_name(self._sink, self._writer, "abort", error)


def called_by_name(sink: str, of: object, method: str, *given: Any) -> Any:
    """Call a method of an output or its writer; errors name the sink.

    Args:
        sink: name of the sink.
        of: the output or the writer.
        method: name of the method.
        given: its arguments.

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

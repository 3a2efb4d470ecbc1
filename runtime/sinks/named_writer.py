"""An output of the user's own being written to, with errors that say whose it is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from slackwater.runtime.errors import SinkError
from slackwater.runtime.model.whose_code import RUNNING, let_ctrl_c_pass, raised, where_raised
from slackwater.runtime.sinks.output import Output, OutputContext, SinkWriter

__all__ = ["NamedWriter", "called_by_name"]

_METHODS = ("write", "close", "abort")
_SAMPLE_ROWS = 3


class NamedWriter:
    """Opens an output, and writes to it.

    Args:
        output: whose `open` is called.
        schema: of its rows.
        context: for which sink, and where.

    Raises:
        SinkError: opening it raised, or returned no writer; with the sink, the class, the line,
            and the user's own traceback.
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
        """Hand over rows.

        Raises:
            SinkError: as when it was opened, with the first of the rows.
        """
        try:
            called_by_name(self._sink, self._writer, "write", rows)
        except SinkError as problem:
            sample = rows.slice(0, _SAMPLE_ROWS).to_pylist()
            raise SinkError(f"{problem}\nsample of the batch: {sample}") from problem.__cause__

    def close(self) -> None:
        """Finish.

        Raises:
            SinkError: as when it was opened.
        """
        called_by_name(self._sink, self._writer, "close")

    def abort(self, error: str) -> None:
        """Finish behind a failure.

        Raises:
            SinkError: as when it was opened.
        """
        called_by_name(self._sink, self._writer, "abort", error)


def called_by_name(sink: str, of: object, method: str, *given: Any) -> Any:
    """Return what a method of an output, or of its writer, returns.

    Args:
        sink: whose it is.
        of: the output or the writer.
        method: its name.
        given: its arguments.

    Raises:
        SinkError: it raised; `sys.exit()` too.
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

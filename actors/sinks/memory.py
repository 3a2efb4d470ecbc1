"""Sinks without files: in memory, or the user's function."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model.arrow_streams import stream_of
from slackwater.runtime.model.whose_code import RUNNING, let_ctrl_c_pass, raised, where_raised
from slackwater.runtime.shown_rows import batch_shown
from slackwater.runtime.sinks.output import Sink


class CollectSink(Sink):
    """Keeps all results in memory for `job.result(name)`: for tests and small answers.

    Its position is all its rows, so they are a part of each checkpoint.
    """

    def __init__(self, schema: pa.Schema, *, at: bytes | None = None) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._rows_before = 0
        if at:
            with pa.ipc.open_stream(at) as rows:
                self._batches += rows
            self._rows_before = sum(map(len, self._batches))

    def last_ordinal(self) -> int:  # noqa: D102 - see Sink
        return self._rows_before - 1

    def position(self) -> bytes:  # noqa: D102 - see Sink
        return self.stream()

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:  # noqa: D102
        del first_ordinal
        self._batches.append(rows)

    def table(self) -> pa.Table:
        """Return all rows so far."""
        return pa.Table.from_batches(self._batches, schema=self._schema)

    def stream(self) -> bytes:
        """Return all rows so far as an Arrow IPC stream."""
        return bytes(stream_of(self.table()))


class CallbackSink(Sink):
    """Hands each batch of results to the user's function, on the node of the sink."""

    def __init__(
        self,
        name: str,
        function: Callable[[pa.RecordBatch], None],
        *,
        at_end: Callable[[], None] | None = None,
    ) -> None:
        self._name = name
        self._function = function
        self._at_end = at_end

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:  # noqa: D102
        del first_ordinal
        token = RUNNING.set(self._name)
        try:
            self._function(rows)
        except BaseException as problem:
            let_ctrl_c_pass(problem)
            sample = f"sample of the batch: {batch_shown(rows, 3)}"
            raise self._own_error("its callback", problem, sample) from problem
        finally:
            RUNNING.reset(token)

    def abort(self, error: str) -> None:
        """Call `at_end`, the first time: after a failure the callback has seen all rows, too."""
        del error
        self.close()

    def close(self) -> None:
        """Call `at_end`, the first time."""
        at_end, self._at_end = self._at_end, None
        if at_end is None:
            return
        token = RUNNING.set(self._name)
        try:
            at_end()
        except BaseException as problem:
            let_ctrl_c_pass(problem)
            raise self._own_error("its callback's at_end", problem) from problem
        finally:
            RUNNING.reset(token)

    def _own_error(self, what: str, problem: BaseException, sample: str = "") -> OperatorError:
        _, lines = where_raised(problem)
        return OperatorError(f"sink {self._name!r}: {what} {raised(problem)}\n{lines}\n{sample}")

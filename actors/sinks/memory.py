"""Sinks without files: results kept in memory, or handed to the user's function."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pyarrow as pa

from runtime.errors import OperatorError
from runtime.model.whose_code import RUNNING


class CollectSink:
    """Keeps all results in memory, for `job.result(name)`: for tests and small answers."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []

    def write(self, rows: pa.RecordBatch) -> None:
        """Keep the rows."""
        self._batches.append(rows)

    def close(self) -> None:
        """Nothing to finish."""

    def table(self) -> pa.Table:
        """Return everything so far."""
        return pa.Table.from_batches(self._batches, schema=self._schema)


class CallbackSink:
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

    def write(self, rows: pa.RecordBatch) -> None:
        """Call the function."""
        token = RUNNING.set(self._name)
        try:
            self._function(rows)
        except Exception as problem:
            sample = f"sample of the batch: {rows.slice(0, 3).to_pylist()}"
            raise self._own_error("its callback", problem, sample) from problem
        finally:
            RUNNING.reset(token)

    def close(self) -> None:
        """Call `at_end`, the first time."""
        at_end, self._at_end = self._at_end, None
        if at_end is None:
            return
        token = RUNNING.set(self._name)
        try:
            at_end()
        except Exception as problem:
            raise self._own_error("its callback's at_end", problem) from problem
        finally:
            RUNNING.reset(token)

    def _own_error(self, what: str, problem: Exception, sample: str = "") -> OperatorError:
        return OperatorError(
            f"sink {self._name!r}: {what} raised {type(problem).__name__}: {problem}\n"
            f"{traceback.format_exc()}{sample}"
        )

"""An input being read, with errors that say whose it is: a user's own can raise anything."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from runtime.errors import IngestError, SchemaError, SlackwaterError
from runtime.model.whose_code import RUNNING
from runtime.sources.spec import EndOfInput, Input, Reader

_T = TypeVar("_T")


class NamedReader:
    """Opens an input, and reads it.

    Args:
        source: the name of the source.
        input: what it reads.

    Raises:
        IngestError: opening it raised something that is no error of ours; with the source, the
            class, the line, and the user's own traceback.
    """

    def __init__(self, source: str, input: Input) -> None:  # noqa: A002 - as in SourceSpec
        self._source = source
        self._reader: Reader = self._called(input.open, type(input), "open")

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        """Return what the reader returns.

        Raises:
            IngestError: as when it was opened.
            SchemaError: it returned no record batch.
        """
        polled: Any = self._called(self._reader.poll, type(self._reader), "poll")
        if polled is None or isinstance(polled, pa.RecordBatch | EndOfInput):
            return polled
        raise SchemaError(
            f"source {self._source!r}: {type(self._reader).__qualname__}.poll returned a "
            f"{type(polled).__name__}; it must return a pyarrow.RecordBatch, None (nothing now) "
            "or END_OF_INPUT (make one of a table with table.combine_chunks().to_batches()[0], of "
            "columns with pyarrow.record_batch({name: values}))"
        )

    def close(self) -> None:
        """Close the reader."""
        self._called(self._reader.close, type(self._reader), "close")

    def _called(self, function: Callable[[], _T], kind: type, method: str) -> _T:
        token = RUNNING.set(self._source)
        try:
            return function()
        except SlackwaterError:
            raise
        except Exception as problem:
            raise self._named(problem, f"{kind.__qualname__}.{method}") from problem
        finally:
            RUNNING.reset(token)

    def _named(self, problem: Exception, what: str) -> IngestError:
        own = problem.__traceback__ and problem.__traceback__.tb_next  # the first frame is ours
        frames = traceback.extract_tb(own)
        at = f", at {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
        lines = traceback.format_exception(type(problem), problem, own)
        return IngestError(
            f"source {self._source!r}: {what} raised {type(problem).__name__}: {problem}{at}; mend "
            f"it there, or let it return what it has and go on\n{''.join(lines).rstrip()}"
        )

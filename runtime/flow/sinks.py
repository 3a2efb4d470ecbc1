"""Where results can go: what `Stream.sink` takes. `actors/sinks/` opens them."""

from __future__ import annotations

import os
from collections.abc import Callable

import pyarrow as pa

from runtime.errors import TypeMismatch
from runtime.flow.steps import SinkSpec


def parquet_sink(path: str | os.PathLike[str], *, overwrite: bool = False) -> SinkSpec:
    """Return a folder of parquet files; results that are there already need `overwrite`."""
    return SinkSpec("parquet", path=os.fspath(path), overwrite=overwrite)


def jsonl_sink(path: str | os.PathLike[str], *, overwrite: bool = False) -> SinkSpec:
    """Return a file with one JSON object a line; one that is there already needs `overwrite`."""
    return SinkSpec("jsonl", path=os.fspath(path), overwrite=overwrite)


def callback_sink(
    function: Callable[[pa.RecordBatch], None], *, at_end: Callable[[], None] | None = None
) -> SinkSpec:
    """Return a function that is called with each batch of results, where the sink runs.

    Args:
        function: a result has left the flow when it returns.
        at_end: called once behind the last batch, also when the job was stopped or failed: for
            what the function has gathered, or opened.

    Raises:
        TypeMismatch: one of them cannot be called.
    """
    if not callable(function):
        raise TypeMismatch(f"callback_sink takes a function of a record batch, not {function!r}")
    if at_end is not None and not callable(at_end):
        raise TypeMismatch(f"callback_sink takes at_end as a function, not {at_end!r}")
    return SinkSpec("callback", function=function, at_end=at_end)


def collect_sink() -> SinkSpec:
    """Return results kept in memory, for the job to hand over at its end."""
    return SinkSpec("collect")

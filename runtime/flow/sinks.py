"""Where results can go: what `Stream.sink` takes. `actors/sinks/` opens them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal

import pyarrow as pa

from runtime.errors import SettingError, TypeMismatch
from runtime.model import Duration, duration_ns
from runtime.plan.steps import SinkSpec


def parquet_sink(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    resume: bool = False,
    every: Duration | None = None,
    rows: int | None = None,
) -> SinkSpec:
    """Return a folder of parquet files, or one file where the path ends in `.parquet`.

    Args:
        path: what lies there already is refused, unless one of the next two says otherwise.
        overwrite: replace what our manifest there names, once the new is whole (with `every` or
            `rows`: when its first part is).
        resume: go on behind what an earlier run of the same flow, over the same files, has
            committed there; for flows that release only what is ready.
        every: publish a part at the latest so long after its first row; needs a folder.
        rows: publish a part when it has so many rows (4,000,000 unless told); needs a folder.

    Raises:
        SettingError: two options exclude each other, or one is out of range.
    """
    return _files("parquet", path, overwrite=overwrite, resume=resume, every=every, rows=rows)


def jsonl_sink(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    resume: bool = False,
    every: Duration | None = None,
    rows: int | None = None,
) -> SinkSpec:
    """Return one file with a JSON object a line, or a folder of such where the path has no ending.

    Args:
        path: as all else, as for `parquet_sink`.
        overwrite: as there.
        resume: as there.
        every: as there.
        rows: as there.

    Raises:
        SettingError: two options exclude each other, or one is out of range.
    """
    return _files("jsonl", path, overwrite=overwrite, resume=resume, every=every, rows=rows)


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


def _files(
    kind: Literal["parquet", "jsonl"],
    path: str | os.PathLike[str],
    *,
    overwrite: bool,
    resume: bool,
    every: Duration | None,
    rows: int | None,
) -> SinkSpec:
    who = f"{kind}_sink({os.fspath(path)!r})"
    if overwrite and resume:
        raise SettingError(
            f"{who}: overwrite=True replaces what is there and resume=True goes on behind it; "
            "choose one"
        )
    if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
        raise SettingError(f"{who}: rows={rows!r} must be a whole number, 1 or more")
    every_ns = None if every is None else duration_ns(every, what=f"{who}: every", positive=True)
    spec = SinkSpec(
        kind, os.fspath(path), overwrite=overwrite, resume=resume, rows=rows, every_ns=every_ns
    )
    if spec.is_file and (every is not None or rows is not None):
        option = "rows=" if every is None else "every="
        raise SettingError(
            f"{who}: a path with an ending is one file, which appears when it is whole; {option} "
            "publishes parts as they fill, which needs a folder: leave the ending away"
        )
    return spec

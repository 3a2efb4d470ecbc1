"""The outputs of ours: what `Stream.sink` takes beside a user's own, and how each opens itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from slackwater.actors.sinks.file_settings import FileSettings
from slackwater.actors.sinks.memory import CallbackSink, CollectSink
from slackwater.actors.sinks.sink import OurOutput
from slackwater.runtime.errors import SettingError, TypeMismatch
from slackwater.runtime.local_path import NoLocalPath, local_path
from slackwater.runtime.model import Duration, duration_ns, format_ns
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.sinks import CommitTraits, OutputContext, SinkTraits

if TYPE_CHECKING:
    from slackwater.actors.sinks.files import FileSink

__all__ = [
    "CallbackOutput",
    "CollectOutput",
    "FilesOutput",
    "callback_sink",
    "collect_sink",
    "jsonl_sink",
    "parquet_sink",
]


@dataclass(frozen=True)
class FilesOutput(FileSettings, OurOutput):
    """Files that are whole: a folder of parts, or one."""

    @property
    def traits(self) -> SinkTraits:
        """Return that it commits, and where."""
        return SinkTraits(
            runs_users_code=False,
            commits=CommitTraits(
                path=self.path,
                format=self.format,
                is_file=self.is_file,
                overwrite=self.overwrite,
                resume=self.resume,
                rows=self.rows,
            ),
        )

    def describe(self) -> str:
        """Return format and path, and below how it publishes."""
        words = []
        if self.rows is not None:
            words.append(f"a part for {self.rows:,} rows")
        if self.every_ns is not None:
            words.append(f"published every {format_ns(self.every_ns)}")
        if self.overwrite:
            words.append("replaces what our manifest there names")
        if self.resume:
            words.append("goes on behind what is committed")
        return f"{self.format} {self.path}" + (f"\n{', '.join(words)}" if words else "")

    def open(self, schema: pa.Schema, context: OutputContext) -> FileSink:
        """Take the lock of the place, and look at what is there."""
        from slackwater.actors.sinks.files import FileSink  # noqa: PLC0415 (brings in Arrow's parquet)

        if self.format == "jsonl":
            arrow_functions()  # now, not in the first row's latency
        # In full: the process may go elsewhere.
        path = os.path.abspath(os.path.join(context.folder, self.path))
        return FileSink(
            context.sink,
            self,
            path,
            schema,
            run=context.run,
            has_ended=context.has_ended,
            clock_ns=context.clock_ns,
        )


@dataclass(frozen=True)
class CallbackOutput(OurOutput):
    """The user's function.

    Attributes:
        function: called with each batch.
        at_end: called behind the last call of `function`; None: nothing is.
    """

    function: Callable[[pa.RecordBatch], None]
    at_end: Callable[[], None] | None = None

    @property
    def traits(self) -> SinkTraits:
        """Return that it is the user's code."""
        return SinkTraits()

    def describe(self) -> str:
        """Return its name."""
        return "callback"

    def open(self, schema: pa.Schema, context: OutputContext) -> CallbackSink:
        """Make ready to call it."""
        del schema
        return CallbackSink(context.sink, self.function, at_end=self.at_end)


@dataclass(frozen=True)
class CollectOutput(OurOutput):
    """Memory, from where the job hands rows over at its end."""

    @property
    def traits(self) -> SinkTraits:
        """Return that it collects."""
        return SinkTraits(collects=True, runs_users_code=False)

    def describe(self) -> str:
        """Return its name."""
        return "collect"

    def open(self, schema: pa.Schema, context: OutputContext) -> CollectSink:
        """Begin with no rows."""
        del context
        return CollectSink(schema)


def parquet_sink(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    resume: bool = False,
    every: Duration | None = None,
    rows: int | None = None,
) -> FilesOutput:
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
        SettingError: two options exclude each other, one is out of range, or the path has a
            scheme such as s3:// (file:// is a path of the machine).
    """
    return _files("parquet", path, overwrite=overwrite, resume=resume, every=every, rows=rows)


def jsonl_sink(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    resume: bool = False,
    every: Duration | None = None,
    rows: int | None = None,
) -> FilesOutput:
    """Return one file with a JSON object a line, or a folder of such where the path has no ending.

    Args:
        path: as all else, as for `parquet_sink`.
        overwrite: as there.
        resume: as there.
        every: as there.
        rows: as there.

    Raises:
        SettingError: two options exclude each other, one is out of range, or the path has a
            scheme such as s3:// (file:// is a path of the machine).
    """
    return _files("jsonl", path, overwrite=overwrite, resume=resume, every=every, rows=rows)


def callback_sink(
    function: Callable[[pa.RecordBatch], None], *, at_end: Callable[[], None] | None = None
) -> CallbackOutput:
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
    return CallbackOutput(function, at_end)


def collect_sink() -> CollectOutput:
    """Return results kept in memory, for the job to hand over at its end."""
    return CollectOutput()


def _files(
    form: str,
    path: str | os.PathLike[str],
    *,
    overwrite: bool,
    resume: bool,
    every: Duration | None,
    rows: int | None,
) -> FilesOutput:
    who = f"{form}_sink({os.fspath(path)!r})"
    try:
        local = local_path(path)
    except NoLocalPath as problem:
        way_out = "; write to a folder that is mounted, and copy the parts from there, or send "
        way_out = f"{way_out}rows with callback_sink" if problem.is_elsewhere else ""
        raise SettingError(f"{who}: {problem}{way_out}") from None
    if overwrite and resume:
        raise SettingError(
            f"{who}: overwrite=True replaces what is there and resume=True goes on behind it; "
            "choose one"
        )
    if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
        raise SettingError(f"{who}: rows={rows!r} must be a whole number, 1 or more")
    every_ns = None if every is None else duration_ns(every, what=f"{who}: every", positive=True)
    output = FilesOutput(
        form, local, overwrite=overwrite, resume=resume, rows=rows, every_ns=every_ns
    )
    if output.is_file and (every is not None or rows is not None):
        option = "rows=" if every is None else "every="
        raise SettingError(
            f"{who}: a path with an ending is one file, which appears when it is whole; {option} "
            "publishes parts as they fill, which needs a folder: leave the ending away"
        )
    return output

"""Define our outputs, which `Stream.sink` takes besides custom ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from slackwater.actors.sinks.file_settings import PLAIN_CSV, CsvFormat, FileSettings
from slackwater.actors.sinks.memory import CallbackSink, CollectSink
from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import SettingError, SinkError, TypeMismatch
from slackwater.runtime.local_path import NoLocalPath, local_path
from slackwater.runtime.model import Duration, duration_ns, format_ns
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import shown
from slackwater.runtime.sinks.output import FileTraits, Output, OutputContext, SinkTraits
from slackwater.runtime.sinks.rolling import PART_ROWS

if TYPE_CHECKING:
    from slackwater.actors.sinks.files import FileSink
    from slackwater.actors.sinks.shown import PrintSink

__all__ = [
    "CallbackOutput",
    "CollectOutput",
    "FilesOutput",
    "PrintOutput",
    "callback_sink",
    "collect_sink",
    "csv_sink",
    "jsonl_sink",
    "parquet_sink",
    "print_sink",
]

MOST_PRINTED = 1_000
"""Most rows of a print sink: lines wait for the driver in a queue of 2,000."""


@dataclass(frozen=True)
class FilesOutput(FileSettings, Output):
    """Output of whole files: a folder of parts, or one file."""

    @cached_property
    def traits(self) -> SinkTraits:  # type: ignore[override]  # noqa: D102 - of a frozen value
        return SinkTraits(
            rows=None if self.is_file else self.rows or PART_ROWS,
            every_ns=self.every_ns,
            only_whole=self.overwrite and not self.is_live,
            resumes=self.resume,
            opens_early=True,
            is_named=True,
            runs_users_code=False,
            files=FileTraits(
                path=self.path,
                format=self.format,
                is_file=self.is_file,
                overwrite=self.overwrite,
                rows=self.rows,
                form=self.csv.describe(),
            ),
        )

    def describe(self) -> str:
        """Return format and path; on a second line, how the output publishes."""
        words = [form] if (form := self.csv.describe()) else []
        if self.rows is not None:
            words.append(f"a part for {self.rows:,} rows")
        if self.every_ns is not None:
            words.append(f"published every {format_ns(self.every_ns)}")
        if self.overwrite:
            words.append("replaces the parts in our manifest there")
        if self.resume:
            words.append("goes on after the committed rows")
        return f"{self.format} {self.path}" + (f"\n{', '.join(words)}" if words else "")

    def open(self, schema: pa.Schema, context: OutputContext) -> FileSink:
        """Lock the path, and check its earlier results."""
        # They bring in Arrow's parquet.
        from slackwater.actors.sinks.files import FileSink  # noqa: PLC0415
        from slackwater.actors.sinks.shared_files import SharedFileSink  # noqa: PLC0415

        if self.format != "parquet":
            arrow_functions()  # load now, not in the first row's latency
        # Absolute: the process may change its folder.
        path = os.path.abspath(os.path.join(context.folder, self.path))
        if context.writer is not None:
            if context.keeps_positions:
                raise SinkError(
                    f"sink {context.sink!r}: with ordered=False each replica writes its own parts, "
                    "which cannot go on from a checkpoint; omit ordered=False, or the checkpoints"
                )
            return SharedFileSink(self, path, schema, context, context.writer)
        return FileSink(self, path, schema, context)


@dataclass(frozen=True)
class CallbackOutput(Output):
    """Output that calls the user's function.

    Attributes:
        function: called with each batch.
        at_end: called after the last call of `function`; None if not used.
        retry: how often a call that raised is tried again.
    """

    function: Callable[[pa.RecordBatch], None]
    at_end: Callable[[], None] | None = None
    retry: int = 0

    @cached_property
    def traits(self) -> SinkTraits:  # type: ignore[override]  # noqa: D102 - of a frozen value
        return SinkTraits(is_named=True, retry=self.retry)

    def describe(self) -> str:  # noqa: D102
        return "callback"

    def open(self, schema: pa.Schema, context: OutputContext) -> CallbackSink:  # noqa: D102
        del schema
        return CallbackSink(context.sink, self.function, at_end=self.at_end)


@dataclass(frozen=True)
class CollectOutput(Output):
    """Output kept in memory; the job hands its rows over at its end."""

    traits = SinkTraits(opens_early=True, is_named=True, runs_users_code=False, collects=True)

    def describe(self) -> str:  # noqa: D102
        return "collect"

    def open(self, schema: pa.Schema, context: OutputContext) -> CollectSink:  # noqa: D102
        return CollectSink(schema, at=context.at)


@dataclass(frozen=True)
class PrintOutput(Output):
    """Output that shows its first rows on the driver's stdout.

    Attributes:
        limit: most rows that are shown.
    """

    limit: int

    traits = SinkTraits(is_named=True, only_shows=True)

    def describe(self) -> str:  # noqa: D102
        return f"print, {count_of(self.limit, 'row')} at most"

    def open(self, schema: pa.Schema, context: OutputContext) -> PrintSink:  # noqa: D102
        from slackwater.actors.sinks.shown import PrintSink  # noqa: PLC0415 (few flows need it)

        arrow_functions()  # load now, not in the first row's latency
        return PrintSink(context.sink, schema, limit=self.limit, show=context.show)


@checked_call
def parquet_sink(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    resume: bool = False,
    every: Duration | None = None,
    rows: int | None = None,
) -> FilesOutput:
    """Return a folder of parquet files, or one file if the path ends in `.parquet`.

    Args:
        path: earlier results there are refused, unless `overwrite` or `resume` is set.
        overwrite: replace the parts in our manifest there once the new output is whole (with
            `every` or `rows`: once its first part is).
        resume: go on after the rows that an earlier run of the same flow, over the same files, has
            committed there; for flows that release only what is ready.
        every: publish a part at the latest this long after its first row; needs a folder.
        rows: publish a part when it has this many rows (default: 4,000,000); needs a folder.

    Raises:
        SettingError: two options exclude each other, one is out of range, or the path has a
            scheme such as s3:// (file:// is a path of the machine).
    """
    return _files("parquet", path, overwrite=overwrite, resume=resume, every=every, rows=rows)


@checked_call
def jsonl_sink(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    resume: bool = False,
    every: Duration | None = None,
    rows: int | None = None,
) -> FilesOutput:
    """Return a file of JSON lines, or a folder if the path has no ending.

    Args:
        path: path as for `parquet_sink`.
        overwrite: whether older rows are replaced, as for `parquet_sink`.
        resume: whether an earlier run is continued, as for `parquet_sink`.
        every: length of parts in time, as for `parquet_sink`.
        rows: rows of a part, as for `parquet_sink`.

    Raises:
        SettingError: two options exclude each other, one is out of range, or the path has a
            scheme such as s3:// (file:// is a path of the machine).
    """
    return _files("jsonl", path, overwrite=overwrite, resume=resume, every=every, rows=rows)


@checked_call
def csv_sink(
    path: str | os.PathLike[str],
    *,
    sep: str = ",",
    header: bool = True,
    nulls: str = "",
    overwrite: bool = False,
    resume: bool = False,
    every: Duration | None = None,
    rows: int | None = None,
) -> FilesOutput:
    """Return a CSV file, or a folder if the path has no ending.

    Text is in quotes where it needs them. Lists, structs and maps are JSON, bytes are base64.

    Args:
        path: path as for `parquet_sink`.
        sep: the separator of values: one ASCII character.
        header: whether each file begins with the names of the columns.
        nulls: text of a null. A value of the same text is in quotes, and so is empty text.
        overwrite: whether older rows are replaced, as for `parquet_sink`.
        resume: whether an earlier run is continued, as for `parquet_sink`.
        every: length of parts in time, as for `parquet_sink`.
        rows: rows of a part, as for `parquet_sink`.

    Raises:
        SettingError: two options exclude each other, one is out of range, or the path has a
            scheme such as s3:// (file:// is a path of the machine).
    """
    who = f"csv_sink({os.fspath(path)!r})"
    if not isinstance(sep, str) or len(sep) != 1 or not sep.isascii() or sep in '"\r\n\0':
        raise SettingError(
            f"{who}: sep={shown(sep)} must be one ASCII character, other than a quote or a line "
            "end; write sep=';' or sep='\\t'"
        )
    if any(sign in nulls for sign in f'{sep}"\r\n\0'):
        raise SettingError(
            f"{who}: nulls={shown(nulls)} must be text without separator, quote and line end; "
            "write nulls='NULL'"
        )
    form = CsvFormat(sep, bool(header), nulls)
    return _files("csv", path, overwrite=overwrite, resume=resume, every=every, rows=rows, csv=form)


@checked_call
def callback_sink(
    function: Callable[[pa.RecordBatch], None],
    *,
    at_end: Callable[[], None] | None = None,
    retry: int = 0,
) -> CallbackOutput:
    """Return an output that calls a function with each batch, where the sink runs.

    Args:
        function: called with each batch; its results have left the flow when it returns.
        at_end: called once after the last batch, also of a stopped or failed job: for anything
            that the function has gathered or opened.
        retry: how often a call that raised is tried again with the same batch, after 0.1 s, 0.2 s,
            0.4 s and so on, at most 10 s. Then it ends the job. 0: at once.

    Raises:
        TypeMismatch: one of both is not callable.
        SettingError: `retry` is below 0.
    """
    if not callable(function):
        raise TypeMismatch(
            f"callback_sink takes a function of a record batch, not {shown(function)}; pass one "
            "such as print"
        )
    if at_end is not None and not callable(at_end):
        raise TypeMismatch(f"callback_sink takes at_end as a function, not {shown(at_end)}")
    if retry < 0:
        raise SettingError(f"callback_sink: retry={shown(retry)} must be a whole number, 0 or more")
    return CallbackOutput(function, at_end, retry)


@checked_call
def print_sink(limit: int = 20) -> PrintOutput:
    """Return an output that prints its first rows on stdout of the process that submits.

    Args:
        limit: most rows that are printed, at most 1,000; the others are counted.

    Raises:
        SettingError: the limit is out of range.
    """
    if not 1 <= limit <= MOST_PRINTED:
        raise SettingError(
            f"print_sink: limit={shown(limit)} must be a whole number from 1 to {MOST_PRINTED:,}; "
            "write more rows to a file with csv_sink('out.csv')"
        )
    return PrintOutput(limit)


@checked_call
def collect_sink() -> CollectOutput:
    """Return an output in memory; the job hands its rows over at its end."""
    return CollectOutput()


def _files(
    form: str,
    path: str | os.PathLike[str],
    *,
    overwrite: bool,
    resume: bool,
    every: Duration | None,
    rows: int | None,
    csv: CsvFormat = PLAIN_CSV,
) -> FilesOutput:
    who = f"{form}_sink({os.fspath(path)!r})"
    try:
        local = local_path(path)
    except NoLocalPath as problem:
        way_out = "; write to a folder that is mounted, and copy the parts from there, or send "
        way_out = f"{way_out}rows with callback_sink" if problem.is_elsewhere else ""
        raise SettingError(f"{who}: {problem}{way_out}") from None
    if form != "parquet" and local.endswith((".gz", ".bz2", ".zst", ".lz4", ".br")):
        raise SettingError(
            f"{who}: the ending says that the file is compressed, and {form}_sink does not "
            f"compress; name it .{form}, or use parquet_sink, which does"
        )
    if overwrite and resume:
        raise SettingError(
            f"{who}: overwrite=True replaces the results there, and resume=True goes on after "
            "them; choose one"
        )
    if rows is not None and rows < 1:
        raise SettingError(f"{who}: rows={shown(rows)} must be a whole number, 1 or more")
    every_ns = None if every is None else duration_ns(every, what=f"{who}: every", positive=True)
    output = FilesOutput(
        form, local, overwrite=overwrite, resume=resume, rows=rows, every_ns=every_ns, csv=csv
    )
    if output.is_file and (every is not None or rows is not None):
        option = "rows=" if every is None else "every="
        raise SettingError(
            f"{who}: a path with an ending is one file, which appears when it is whole; {option} "
            "publishes parts as they fill, which needs a folder; omit the ending"
        )
    return output

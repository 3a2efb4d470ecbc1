"""Contract of outputs and their open sinks: one for ours and custom ones.

```
open ─ last_ordinal ─ write … write ─ flush ─ commit ─ write … ─ end ─ flush ─ commit ─ close
                        at a checkpoint: position
                                        the job is stopped:    ──────── flush ─ commit ─ close
                                        anything fails:        ─ abort
```

Writing is I/O: our outputs are in `actors/sinks/`, custom ones in user code. When to flush and
commit is decided by `runtime/schedule/results.py`, by the output's traits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pyarrow as pa

from slackwater.runtime.errors import SettingError
from slackwater.runtime.shown import shown
from slackwater.runtime.sinks.fingerprint import SinkRun

if TYPE_CHECKING:
    from slackwater.runtime.sinks.lock import Holder

__all__ = [
    "FileTraits",
    "HasEnded",
    "Output",
    "OutputContext",
    "OutputWriter",
    "Sink",
    "SinkProgress",
    "SinkTraits",
]

HasEnded = Callable[["Holder"], bool]
"""Whether the end of a holder's job is on record."""


@dataclass
class SinkProgress:
    """Progress of a sink's output, for reports.

    Attributes:
        parts, published: files that readers see, and this run's rows in them.
        waiting: rows written that no reader sees yet.
        notes: sentences for the user.
    """

    parts: int = 0
    published: int = 0
    waiting: int = 0
    notes: list[str] = field(default_factory=list)


class Sink(ABC):
    """Open output, called from one thread.

    After the last `write` comes one `close` or one `abort`; after any method that raised, `abort`
    comes too. Neither comes if the process is killed.
    """

    def last_ordinal(self) -> int:
        """Return the ordinal of the last row that an earlier run committed; −1 without one.

        Asked once, before the first row. Rows up to it are not written again. Above −1 only for
        an output whose traits say `resumes`.
        """
        return -1

    @abstractmethod
    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:
        """Write rows. They have left the flow when this returns.

        Args:
            rows: rows, at least one, with the columns of the stream. Their memory is never changed
                later, so they may be kept.
            first_ordinal: ordinal of the first row: rows of this sink's stream before it. It
                follows that of the last row written, or `last_ordinal`.
        """

    def end(self) -> None:  # noqa: B027 - a default
        """Note that the stream has ended: no row follows. `flush` and `commit` follow."""

    def flush(self) -> None:  # noqa: B027 - a default
        """Make all rows written so far whole: they may be committed now."""

    def commit(self) -> None:  # noqa: B027 - a default
        """Publish the rows that were flushed: from now on they survive a crash."""

    def position(self) -> bytes | None:
        """Return the place of the last row that was written, if the sink has such.

        Called at each checkpoint of the job. All rows up to it must survive a crash; without a
        position they are committed. After a failure the output is opened with that position in its
        context, and `last_ordinal` is that of this row, or of a later one that it has published.
        """
        return None

    def close(self) -> None:  # noqa: B027 - a default
        """Release resources: the stream has ended, or its user has stopped the job."""

    def abort(self, error: str) -> None:  # noqa: B027 - a default
        """Release resources after a failure, here or elsewhere; only committed rows stay.

        A sink that was opened for a job that never started is aborted, too.
        """

    def progress(self) -> SinkProgress | None:
        """Return the progress of the output, for the report; None if it publishes nothing."""
        return None


@dataclass(frozen=True, kw_only=True)
class FileTraits:
    """Traits of an output of files, which other sinks and sources must keep apart from.

    Attributes:
        path: path of the output.
        format: format of its files, which is also their ending.
        is_file: whether the path is one file, and not a folder of parts.
        overwrite: whether it replaces rows committed by an earlier run.
        rows: rows of a part; as many as make a good file if None.
        form: options of the format that decide what its files have; empty: none differs.
    """

    path: str
    format: str
    is_file: bool
    overwrite: bool
    rows: int | None
    form: str = ""


_YES_OR_NO = (
    "only_whole",
    "resumes",
    "opens_early",
    "is_named",
    "runs_users_code",
    "collects",
    "only_shows",
)


@dataclass(frozen=True, kw_only=True)
class SinkTraits:
    """Traits of an output, for its flow and for the slot that drives its sink.

    Attributes:
        rows: the sink is flushed and committed after so many rows; None if at no number of rows.
        every_ns: longest wait of a written row for its commit; None if there is no limit.
        only_whole: whether it is committed once, when its stream has ended, and flushed before.
        resumes: whether a run goes on after `Sink.last_ordinal`, which the output keeps together
            with its rows. A later run does in flows that release only what is ready, so that an
            ordinal means the same row in each run.
        opens_early: whether it is opened before the job starts, where it can refuse, and perhaps
            in another thread than it is written by.
        is_named: whether its errors name the sink themselves.
        runs_users_code: whether it runs custom code, which may print; true of all that shows lines.
        collects: whether the job hands its rows over at the end.
        only_shows: whether it only shows rows to a person, who may see them again.
        retry: how often a call that raised is tried again, after 0.1 s, 0.2 s, 0.4 s and so on, at
            most 10 s; with `resumes` the output is opened again, and given the rows that it lacks.
        files: traits of its files; None if it is not an output of files.
        reads_fields: fields of rows (`ROW_FIELDS`) that reach the sink, such as marks, by which its
            report counts rows.

    Raises:
        SettingError: `rows` or `every_ns` is not a whole number of 1 or more, another trait is not
            what its type says, or `retry` and `resumes` have no bound of rows.
    """

    rows: int | None = None
    every_ns: int | None = None
    only_whole: bool = False
    resumes: bool = False
    opens_early: bool = False
    is_named: bool = False
    runs_users_code: bool = True
    collects: bool = False
    only_shows: bool = False
    retry: int = 0
    files: FileTraits | None = None
    reads_fields: ClassVar[frozenset[str]] = frozenset({"marks"})

    def __post_init__(self) -> None:
        for name in ("rows", "every_ns"):
            if (value := getattr(self, name)) is not None and (type(value) is not int or value < 1):
                raise SettingError(
                    f"SinkTraits: {name}={shown(value)} must be a whole number, 1 or more"
                )
        if type(self.retry) is not int or self.retry < 0:
            raise SettingError(
                f"SinkTraits: retry={shown(self.retry)} must be a whole number, 0 or more"
            )
        if self.retry and self.resumes and self.rows is None and self.every_ns is None:
            raise SettingError(
                "SinkTraits: retry= with resumes=True keeps the rows since the last commit, and "
                "nothing says when that is; add rows= or every_ns="
            )
        for name in _YES_OR_NO:
            if type(value := getattr(self, name)) is not bool:
                raise SettingError(f"SinkTraits: {name}={shown(value)} must be True or False")

    @property
    def has_position(self) -> bool:
        """Whether its sinks always have a position, also after their end."""
        return self.files is not None or self.collects

    @property
    def keeps_ordinal(self) -> bool:
        """Whether the output knows after a failure which rows it has."""
        return self.has_position or (self.resumes and not self.only_whole)

    @property
    def takes_writers(self) -> bool:
        """Whether several sinks of a job may write it: a folder, published part by part."""
        return self.files is not None and not self.files.is_file and not self.only_whole

    @property
    def sees_again(self) -> bool:
        """Whether a rerun writes rows again that it cannot take back."""
        return not (self.keeps_ordinal or self.resumes or self.only_shows)


class OutputWriter(NamedTuple):
    """Writer of an output that several sinks of a job write.

    Attributes:
        number: its number, from 0.
        of: number of all writers.
    """

    number: int
    of: int


@dataclass(frozen=True, kw_only=True)
class OutputContext:
    """Context in which an output is opened.

    Attributes:
        sink: the name of the sink.
        folder: base of relative paths; "" is the working folder of this process.
        run: the run that writes.
        has_ended: says whether a run with that identity has ended; see `HasEnded`.
        last_event_time_ns: returns the event time of the last row written; None if none
            was.
        show: shows a line on stdout of the process that submitted the flow, where there is one.
        keeps_positions: whether the job has checkpoints, for which `Sink.position` is called.
        at: position of the sink in the checkpoint from which the job goes on after a failure; b""
            if it begins again from its start, or the sink has no positions; None if it has just
            been submitted.
        writer: the writer that the sink is; None if it writes all rows.
    """

    sink: str
    folder: str
    run: SinkRun
    has_ended: HasEnded
    last_event_time_ns: Callable[[], int | None]
    show: Callable[[str], None]
    keeps_positions: bool = False
    at: bytes | None = None
    writer: OutputWriter | None = None


class Output(ABC):
    """Output of a sink. Must pickle: it is opened where its sink runs.

    Attributes:
        traits: traits for the flow and the slot; they stay as they are.
    """

    traits: SinkTraits = SinkTraits()

    @abstractmethod
    def describe(self) -> str:
        """Return a short text such as `parquet out/jams`; options on a second line."""

    @abstractmethod
    def open(self, schema: pa.Schema, context: OutputContext) -> Sink:
        """Open the output for writing.

        Args:
            schema: schema of the rows that will come.
            context: its sink and folder.
        """

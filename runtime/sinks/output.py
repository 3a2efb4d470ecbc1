"""What an output is: it opens itself, on whichever node the plan puts it, as an input does.

Writing is I/O: the outputs of ours are in `actors/sinks/`, a user's own wherever they like. What a
flow must know of one before it runs are its traits; a user's own need not have any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from slackwater.runtime.sinks.fingerprint import SinkRun

if TYPE_CHECKING:
    from slackwater.runtime.sinks.lock import Holder

__all__ = [
    "CommitTraits",
    "HasEnded",
    "Output",
    "OutputContext",
    "SinkTraits",
    "SinkWriter",
    "traits_of",
]

HasEnded = Callable[["Holder"], bool]
"""Whether the end of a holder's job is on record."""


class SinkWriter(Protocol):
    """An open output. Called from one thread, the one that opened it.

    After its last `write` comes one `close`, or one `abort`; behind a `close` that has raised,
    `abort` comes too. None of them come if the process is killed.
    """

    def write(self, rows: pa.RecordBatch) -> None:
        """Take results. They have left the flow when this returns."""
        ...

    def close(self) -> None:
        """Finish: the stream has ended, or its user has stopped the job."""
        ...

    def abort(self, error: str) -> None:
        """Finish behind a failure, of this output or of anything else in the job."""
        ...


class Output(Protocol):
    """Where results go. Must pickle: it is opened where its sink runs."""

    def describe(self) -> str:
        """Return what it is in a few words, such as `parquet out/jams`; options in a line more."""
        ...

    def open(self, schema: pa.Schema, context: OutputContext) -> SinkWriter:
        """Open it for writing.

        Args:
            schema: of the rows that will come.
            context: for which sink, and where.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class OutputContext:
    """What an output is told when it is opened.

    Attributes:
        sink: the name of the sink.
        folder: where relative paths start; "" is the working folder of this process.
        run: the run that writes.
        has_ended: see `HasEnded`.
        clock_ns: tells when rows are due to be published; it does not run back.
    """

    sink: str
    folder: str
    run: SinkRun
    has_ended: HasEnded
    clock_ns: Callable[[], int]


@dataclass(frozen=True, kw_only=True)
class CommitTraits:
    """Of an output that commits its rows, so that a later run can go on behind them.

    Attributes:
        path: where to.
        format: of its files, which is also their ending.
        is_file: whether the path is one file, and not a folder of parts.
        overwrite: whether it replaces what an earlier run has committed.
        resume: whether it goes on behind that.
        rows: after how many rows a part ends; None: after as many as make a good file.
    """

    path: str
    format: str
    is_file: bool
    overwrite: bool
    resume: bool
    rows: int | None


@dataclass(frozen=True, kw_only=True)
class SinkTraits:
    """What a flow must know of an output before it runs.

    Attributes:
        collects: whether the job hands its rows over at the end.
        commits: what it commits, and where; None: nothing.
        runs_users_code: whether what it does is the user's own code, which may print.
    """

    collects: bool = False
    commits: CommitTraits | None = None
    runs_users_code: bool = True

    @property
    def sees_again(self) -> bool:
        """Whether a rerun gives it rows that it has seen, and cannot take back."""
        return self.commits is None and not self.collects


_USERS = SinkTraits()


def traits_of(output: Output) -> SinkTraits:
    """Return the traits of an output; of one that has none, those of a user's own."""
    found = getattr(output, "traits", None)
    return found if isinstance(found, SinkTraits) else _USERS

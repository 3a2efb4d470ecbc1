"""Protocol of an output, which is opened on the node of its sink.

Writing is I/O: our outputs are in `actors/sinks/`, custom ones in user code. A flow must know an
output's traits before it runs; a custom output need not have any.
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
    """Open output, called from the one thread that opened it.

    After the last `write` comes one `close` or one `abort`; after a `close` that raised, `abort`
    comes too. Neither comes if the process is killed.
    """

    def write(self, rows: pa.RecordBatch) -> None:
        """Write results. They have left the flow when this returns."""
        ...

    def close(self) -> None:
        """Close: the stream has ended, or its user has stopped the job."""
        ...

    def abort(self, error: str) -> None:
        """Close after a failure, of this output or elsewhere in the job."""
        ...


class Output(Protocol):
    """Output of a sink. Must pickle: it is opened where its sink runs."""

    def describe(self) -> str:
        """Return a short text such as `parquet out/jams`; options on a second line."""
        ...

    def open(self, schema: pa.Schema, context: OutputContext) -> SinkWriter:
        """Open the output for writing.

        Args:
            schema: of the rows that will come.
            context: its sink and folder.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class OutputContext:
    """Context in which an output is opened.

    Attributes:
        sink: the name of the sink.
        folder: base of relative paths; "" is the working folder of this process.
        run: the run that writes.
        has_ended: see `HasEnded`.
        clock_ns: clock by which rows are due to be published; it does not run back.
        show: shows a line on stdout of the process that submitted the flow, where there is one.
    """

    sink: str
    folder: str
    run: SinkRun
    has_ended: HasEnded
    clock_ns: Callable[[], int]
    show: Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class CommitTraits:
    """Traits of an output that commits rows, which later runs can continue.

    Attributes:
        path: path of the output.
        format: of its files, which is also their ending.
        is_file: whether the path is one file, and not a folder of parts.
        overwrite: whether it replaces rows committed by an earlier run.
        resume: whether it continues them.
        rows: rows of a part; None: as many as make a good file.
        form: options of the format that decide what its files have; empty: none differs.
    """

    path: str
    format: str
    is_file: bool
    overwrite: bool
    resume: bool
    rows: int | None
    form: str = ""


@dataclass(frozen=True, kw_only=True)
class SinkTraits:
    """Traits of an output, for a flow before it runs.

    Attributes:
        collects: whether the job hands its rows over at the end.
        commits: traits of its commits; None if it does not commit.
        runs_users_code: whether it runs custom code, which may print.
        only_shows: whether it only shows rows to a person, who may see them again.
    """

    collects: bool = False
    commits: CommitTraits | None = None
    runs_users_code: bool = True
    only_shows: bool = False

    @property
    def sees_again(self) -> bool:
        """Whether a rerun writes rows again that it cannot take back."""
        return self.commits is None and not self.collects and not self.only_shows


_USERS = SinkTraits()


def traits_of(output: Output) -> SinkTraits:
    """Return the traits of an output; without traits, those of a custom one."""
    traits = getattr(output, "traits", None)
    return traits if isinstance(traits, SinkTraits) else _USERS

"""What an open sink is to its slot; how far its output is; what opens one of ours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from slackwater.runtime.model import Int64Array
from slackwater.runtime.sinks import OutputContext, SinkTraits

__all__ = ["OurOutput", "Sink", "SinkProgress", "Unpublished"]


@dataclass
class SinkProgress:
    """How far the output of a sink is.

    Attributes:
        parts, published: files that readers see, and the rows of this run in them.
        waiting: rows written that no reader sees yet.
        skipped: rows of this run that an earlier one had committed already.
        notes: what its user must know.
    """

    parts: int = 0
    published: int = 0
    waiting: int = 0
    skipped: int = 0
    notes: list[str] = field(default_factory=list)


class Sink(Protocol):
    """An open sink. What its readers see is whole, whatever happens."""

    def begin(self) -> None:
        """Get ready, in the thread that will write: the job starts now.

        Raises:
            SinkError: an output of the user's own could not be opened.
        """
        ...

    def write(self, rows: pa.RecordBatch, event_time_ns: Int64Array | None = None) -> None:
        """Take results. They have left the flow when this returns.

        Raises:
            SinkError: they could not be written; what was published before stays whole.
            OperatorError: the user's function raised.
        """
        ...

    @property
    def due_ns(self) -> int | None:
        """When `publish_due` is to be called, though no rows come; None: it need not be."""
        ...

    @property
    def progress(self) -> SinkProgress | None:
        """How far its output is; None: nothing of it is published."""
        ...

    def publish_due(self) -> None:
        """Let readers see rows that have waited for long enough.

        Raises:
            SinkError: as `write`.
        """
        ...

    def close(self, state: str = "done") -> None:
        """Finish, at the end of the stream ("done") or when the job stops. Safe to call twice."""
        ...

    def abort(self, error: str) -> None:
        """Finish behind a failure: what is published stays. Safe to call twice."""
        ...

    def leave(self) -> None:
        """Let go of a place where nothing was written: the job never started."""
        ...


class Unpublished:
    """What sinks have in common of which nothing waits, and nothing is published."""

    due_ns: int | None = None
    progress: SinkProgress | None = None

    def begin(self) -> None:
        """It is ready."""

    def publish_due(self) -> None:
        """Nothing is ever due."""

    def leave(self) -> None:
        """There is no place to let go of."""


class OurOutput(ABC):
    """An output of ours: it is opened before the job starts, so that it can refuse, or lock."""

    @property
    @abstractmethod
    def traits(self) -> SinkTraits:
        """Return what a flow must know of it."""

    @abstractmethod
    def describe(self) -> str:
        """Return what it is in a few words; options in a line more."""

    @abstractmethod
    def open(self, schema: pa.Schema, context: OutputContext) -> Sink:
        """Open it.

        Raises:
            SinkError: it cannot be opened; says why and what to do.
        """

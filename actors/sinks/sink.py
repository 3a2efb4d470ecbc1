"""Define an open sink, the progress of its output, and our outputs that open it."""

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
    """Progress of a sink's output.

    Attributes:
        parts, published: files that readers see, and this run's rows in them.
        waiting: rows written that no reader sees yet.
        skipped: rows of this run that an earlier run had committed.
        notes: sentences for the user.
    """

    parts: int = 0
    published: int = 0
    waiting: int = 0
    skipped: int = 0
    notes: list[str] = field(default_factory=list)


class Sink(Protocol):
    """An open sink. Its readers see whole output, whatever happens."""

    def begin(self) -> None:
        """Get ready, in the thread that will write: the job starts now.

        Raises:
            SinkError: a custom output could not be opened.
        """
        ...

    def write(self, rows: pa.RecordBatch, event_time_ns: Int64Array | None = None) -> None:
        """Write results; they have left the flow when this returns.

        Raises:
            SinkError: writing failed; earlier published parts stay whole.
            OperatorError: the user's function raised.
        """
        ...

    @property
    def due_ns(self) -> int | None:
        """When `publish_due` must be called even if no rows come; None if never."""
        ...

    @property
    def progress(self) -> SinkProgress | None:
        """Progress of the output; None if the sink publishes nothing."""
        ...

    def publish_due(self) -> None:
        """Publish rows whose time limit has passed.

        Raises:
            SinkError: as `write`.
        """
        ...

    def close(self, state: str = "done") -> None:
        """Finish at the end of the stream ("done") or when the job stops. Idempotent."""
        ...

    def abort(self, error: str) -> None:
        """Finish after a failure: published parts stay. Idempotent."""
        ...

    def leave(self) -> None:
        """Release a path where no row was written: the job never started."""
        ...


class Unpublished:
    """Base of sinks without waiting rows and without published parts."""

    due_ns: int | None = None
    progress: SinkProgress | None = None

    def begin(self) -> None:
        """Do nothing: the sink is ready."""

    def publish_due(self) -> None:
        """Do nothing: no row is ever due."""

    def leave(self) -> None:
        """Do nothing: no path is locked."""


class OurOutput(ABC):
    """An output of ours, opened before the job starts: it can refuse, or lock."""

    @property
    @abstractmethod
    def traits(self) -> SinkTraits:
        """Return the output's traits for the flow."""

    @abstractmethod
    def describe(self) -> str:
        """Return the output in a few words; options on a second line."""

    @abstractmethod
    def open(self, schema: pa.Schema, context: OutputContext) -> Sink:
        """Open the sink.

        Raises:
            SinkError: the sink cannot be opened; says why and what to do.
        """

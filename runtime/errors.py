"""Errors that users can meet, as one tree.

```
SlackwaterError
├── FlowError            the dataflow is wrong as written (found before it runs)
│   ├── ColumnError      a column that does not exist; names the nearest one that does
│   ├── TypeMismatch     an expression or option of the wrong type
│   ├── DuplicateName    two steps or columns of one name
│   └── CycleError       a step that feeds itself
├── SettingError         a setting out of its range
├── IngestError          input that cannot be read
│   ├── SchemaError      a column missing, of the wrong type, or null where it may not be
│   ├── OrderError       event time is older than its source had promised
│   ├── RowsGone         rows that a restore needs, and that an origin has dropped: of an input
│   ├── RetentionError   the same with its source, and what to do: ends the job
│   ├── InputGone        an input that has ended for good, as with Spark's session: ends the job
│   └── JavaError        no usable Java for Spark
├── OperatorError        the user's function raised, with its traceback and a sample; or a value
│                        that its column cannot hold, with its row
├── SinkError            results could not be written (disk full, no permission)
│   └── OutputRefused    an output refuses a job that has just begun: ends the job
├── CheckpointError      a checkpoint could not be written, or none can be used
├── FrameError           a malformed or hostile frame on the wire
├── ClusterError         no Ray cluster, wrong token, too few nodes
├── LedgerError          a job is done, and a row that entered has no outcome
├── WorkerDied           an actor or node died in mid-run
└── JobStopped           the job was stopped before its end
```

Each message has the fact, the detail and a hint.
"""

from __future__ import annotations

import errno

from slackwater.runtime.shown import encodable

__all__ = [
    "CheckpointError",
    "ClusterError",
    "ColumnError",
    "CycleError",
    "DuplicateName",
    "FlowError",
    "FrameError",
    "IngestError",
    "InputGone",
    "JavaError",
    "JobStopped",
    "LedgerError",
    "OperatorError",
    "OrderError",
    "OutputRefused",
    "RetentionError",
    "RowsGone",
    "SchemaError",
    "SettingError",
    "SinkError",
    "SlackwaterError",
    "TypeMismatch",
    "WorkerDied",
    "kind_of",
    "way_out",
]

MORE_FILES = "close what the flow's functions open, or raise the limit of open files (ulimit -n)"


def way_out(problem: BaseException, otherwise: str) -> str:
    """Return a hint for a refused file, which at a limit says to raise it."""
    at_limit = getattr(problem, "errno", None) in (errno.EMFILE, errno.ENFILE)
    return MORE_FILES if at_limit else otherwise


class SlackwaterError(Exception):
    """Base of all errors that Slackwater raises on purpose.

    Its texts can be encoded as UTF-8, whatever names and values are in them.
    """

    def __init__(self, *texts: object) -> None:
        super().__init__(*[encodable(text) if isinstance(text, str) else text for text in texts])


class FlowError(SlackwaterError):
    """The dataflow is wrong as written."""


class ColumnError(FlowError):
    """A step names a column that its input does not have."""


class TypeMismatch(FlowError):
    """An expression or option has a type that its place does not take."""


class DuplicateName(FlowError):
    """Two steps, or two columns of one step, share a name."""


class CycleError(FlowError):
    """A step would feed itself."""


class SettingError(SlackwaterError):
    """A setting is out of its range."""


class IngestError(SlackwaterError):
    """Input that cannot be read."""


class SchemaError(IngestError):
    """A column is missing, has the wrong type, or a null where none may be."""


class OrderError(IngestError):
    """Event time is older than the source had promised."""


class RowsGone(IngestError):
    """Rows that a restore needs are gone: their origin has dropped them.

    An input with positions raises it in `open`, or in the first `poll`.

    Args:
        oldest: the oldest rows that the origin still has, as a person knows them: an offset, a
            time.
        missing: number of rows that are gone; None if unknown.
    """

    def __init__(self, oldest: object, missing: int | None = None) -> None:
        super().__init__(oldest, missing)
        self.oldest, self.missing = oldest, missing

    def __str__(self) -> str:
        missing = "rows" if self.missing is None else f"{self.missing:,} rows"
        return f"{missing} are gone from its origin, whose oldest are at {self.oldest}"


class RetentionError(IngestError):
    """A source cannot be read on after a restore: its origin has dropped the rows."""


class InputGone(IngestError):
    """An input has ended for good, before its rows: no other attempt can read them."""


class JavaError(IngestError):
    """Spark needs a Java and none was found."""


class OperatorError(SlackwaterError):
    """A user's function raised, or a value came that its column cannot hold.

    The message holds the step's name, the user's own traceback and a sample of the batch.
    """

    place: int | None = None
    """Place of a refused value's row in the batch, from 0."""


class SinkError(SlackwaterError):
    """Results could not be written."""


class OutputRefused(SinkError):
    """An output refuses a job that has just begun: another attempt would be refused, too."""


class CheckpointError(SlackwaterError):
    """A checkpoint could not be written, read or removed."""


class FrameError(SlackwaterError):
    """A frame on the wire is malformed, too long, or for another receiver."""


class ClusterError(SlackwaterError):
    """The Ray cluster cannot be reached, refuses us, or is too small."""


class LedgerError(SlackwaterError):
    """A job is done, and rows are in flight or missing."""


class WorkerDied(SlackwaterError):
    """An actor or its node died in mid-run; the message names it and its stages."""

    @classmethod
    def at_other_end(cls, slot: str, channel: str) -> WorkerDied:
        """Return the error of a slot that has lost the other end of a channel."""
        return cls(
            f"slot {slot!r} lost the other end of channel {channel!r}: the process there has "
            "ended, or gave no sign of life for longer than Limits(lost_ns=…); submit again"
        )


class JobStopped(SlackwaterError):
    """The job was stopped before its end."""


def kind_of(problem: SlackwaterError) -> str:
    """Return the name of an error's nearest class here, to raise it again elsewhere."""
    return next(kind.__name__ for kind in type(problem).__mro__ if kind.__module__ == __name__)

"""Stimuli of a job's life. Each has a one-line text, for the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = [
    "ClusterGone",
    "ClusterThere",
    "DeadNodes",
    "FinalReportsCollected",
    "HostSilent",
    "ResultsFetched",
    "SlotDied",
    "SlotEnded",
    "Stimulus",
    "StopRequested",
    "TimePassed",
]

MOST_LETTERS = 160
"""Length of a line: a traceback is in the error already."""


@dataclass(frozen=True, slots=True)
class SlotEnded:
    """A slot has ended, and reported it itself.

    Attributes:
        slot: its name.
        state: "done", "stopped" or "failed".
        error: reason why it failed; None if it did not.
        kind: the name of that error's class.
        lost: channels whose other end was gone by then.
    """

    slot: str
    state: str
    error: str | None = None
    kind: str | None = None
    lost: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether the slot ended with an error."""
        return self.error is not None

    def __str__(self) -> str:
        why = "" if self.error is None else f" ({self.kind}: {_short(self.error)})"
        return f"slot {self.slot!r} ended as {self.state}{why}"


@dataclass(frozen=True, slots=True)
class SlotDied:
    """A slot's process is gone, for a reason as far as its host knows.

    Attributes:
        is_own: whether code inside the process has ended it, as the reason says.
    """

    slot: str
    reason: str
    is_own: bool = False

    def __str__(self) -> str:
        return f"slot {self.slot!r} died: {_short(self.reason)}"


@dataclass(frozen=True, slots=True)
class HostSilent:
    """A node's host no longer answers.

    Attributes:
        node_id: id of the node.
        reason: fault of the host, in words.
    """

    node_id: str
    reason: str

    def __str__(self) -> str:
        return f"node {self.node_id:.12} is silent: {_short(self.reason)}"


@dataclass(frozen=True)
class DeadNodes:
    """Answer to `AskForDead`.

    Attributes:
        reasons: {id of a dead node: why}; may be empty.
        states: {silent slot: state of its process}, of those whose host answers.
        still: slots of `states` whose process does not run.
    """

    reasons: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    still: tuple[str, ...] = ()

    def __str__(self) -> str:
        reasons = "; ".join(
            f"{node_id:.12}: {_short(why)}" for node_id, why in self.reasons.items()
        )
        states = "".join(f"; slot {slot!r}: {_short(how)}" for slot, how in self.states.items())
        return f"nodes known to be gone: {reasons or 'none'}{states}"


@dataclass(frozen=True, slots=True)
class ClusterGone:
    """The cluster is gone; what it was, and why."""

    what: str

    def __str__(self) -> str:
        return f"the cluster is gone: {_short(self.what)}"


@dataclass(frozen=True, slots=True)
class ClusterThere:
    """Answer to `CheckCluster`, unless it is `ClusterGone`."""

    def __str__(self) -> str:
        return "the cluster answers"


@dataclass(frozen=True, slots=True)
class StopRequested:
    """The user stops the job."""

    def __str__(self) -> str:
        return "a stop was asked for"


@dataclass(frozen=True, slots=True)
class ResultsFetched:
    """Answer to `FetchResults`."""

    def __str__(self) -> str:
        return "the results were fetched"


@dataclass(frozen=True, slots=True)
class FinalReportsCollected:
    """Answer to `CollectFinalReports`, after a `SlotEnded` of each slot that ended in time."""

    def __str__(self) -> str:
        return "the final reports came"


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Time has passed without a stimulus."""


Stimulus: TypeAlias = (
    SlotEnded
    | SlotDied
    | HostSilent
    | DeadNodes
    | ClusterGone
    | ClusterThere
    | StopRequested
    | ResultsFetched
    | FinalReportsCollected
    | TimePassed
)


def _short(text: str) -> str:
    first = text.strip().split("\n", 1)[0]
    return first if len(first) <= MOST_LETTERS else f"{first[:MOST_LETTERS]}…"

"""What a job may hear in its life. Each says itself in a line, for the record of what came last."""

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
    "StopAsked",
    "TimePassed",
]

MOST_LETTERS = 160
"""Of a line: a traceback is in the error already."""


@dataclass(frozen=True, slots=True)
class SlotEnded:
    """A slot is over, and said so itself.

    Attributes:
        slot: its name.
        state: "done", "stopped" or "failed".
        error: why it failed; None: it did not.
        kind: the name of that error's class.
        lost: the channels whose other end was gone by then.
    """

    slot: str
    state: str
    error: str | None = None
    kind: str | None = None
    lost: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether it ended with an error."""
        return self.error is not None

    def __str__(self) -> str:
        why = "" if self.error is None else f" ({self.kind}: {_short(self.error)})"
        return f"slot {self.slot!r} ended as {self.state}{why}"


@dataclass(frozen=True, slots=True)
class SlotDied:
    """A slot's process is gone; for what reason, as far as its host knows.

    Attributes:
        is_own: whether code inside it has ended it, as the reason says.
    """

    slot: str
    reason: str
    is_own: bool = False

    def __str__(self) -> str:
        return f"slot {self.slot!r} died: {_short(self.reason)}"


@dataclass(frozen=True, slots=True)
class HostSilent:
    """A node's host does not answer any more: {id of the node}, and what is wrong with it."""

    node_id: str
    reason: str

    def __str__(self) -> str:
        return f"node {self.node_id:.12} is silent: {_short(self.reason)}"


@dataclass(frozen=True)
class DeadNodes:
    """The answer to `AskForDead`: {id of a node: why it is known to be gone}; perhaps none."""

    reasons: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        said = "; ".join(f"{one:.12}: {_short(why)}" for one, why in self.reasons.items())
        return f"nodes known to be gone: {said or 'none'}"


@dataclass(frozen=True, slots=True)
class ClusterGone:
    """Who starts and ends slots is gone; what it was, and why."""

    what: str

    def __str__(self) -> str:
        return f"the cluster is gone: {_short(self.what)}"


@dataclass(frozen=True, slots=True)
class ClusterThere:
    """The answer to `CheckCluster`, unless it is `ClusterGone`."""

    def __str__(self) -> str:
        return "the cluster answers"


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The user wants the end."""

    def __str__(self) -> str:
        return "a stop was asked for"


@dataclass(frozen=True, slots=True)
class ResultsFetched:
    """The answer to `FetchResults`."""

    def __str__(self) -> str:
        return "the results were fetched"


@dataclass(frozen=True, slots=True)
class FinalReportsCollected:
    """The answer to `CollectFinalReports`; who ended in time was told by `SlotEnded` before."""

    def __str__(self) -> str:
        return "the final reports came"


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Nothing was heard; it is later."""


Stimulus: TypeAlias = (
    SlotEnded
    | SlotDied
    | HostSilent
    | DeadNodes
    | ClusterGone
    | ClusterThere
    | StopAsked
    | ResultsFetched
    | FinalReportsCollected
    | TimePassed
)


def _short(text: str) -> str:
    first = text.strip().split("\n", 1)[0]
    return first if len(first) <= MOST_LETTERS else f"{first[:MOST_LETTERS]}…"

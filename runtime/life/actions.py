"""Actions of a job's host, performed in order; it answers each with a stimulus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from slackwater.runtime.life.cause import Cause

__all__ = [
    "Action",
    "AskForDead",
    "CheckCluster",
    "CollectFinalReports",
    "End",
    "FetchResults",
    "StopSlots",
]


@dataclass(frozen=True, slots=True)
class CheckCluster:
    """Check that the cluster can start and end slots; answer `ClusterThere` or `ClusterGone`."""


@dataclass(frozen=True, slots=True)
class AskForDead:
    """Ask which of these nodes are known to be gone; answer `DeadNodes`, perhaps empty.

    Attributes:
        node_ids: ids of the nodes.
        within_s: how long to wait for an answer about them.
        slots: silent slots; the answer tells the states of their processes.
    """

    node_ids: tuple[str, ...]
    within_s: float
    slots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StopSlots:
    """Tell these slots to end, and do not wait.

    Attributes:
        slots: the slots that live.
        failure: reason why the job has failed; None if its user stops it: then sinks publish all
            their rows.
    """

    slots: tuple[str, ...]
    failure: str | None


@dataclass(frozen=True, slots=True)
class CollectFinalReports:
    """Stop these slots without the cluster, and fetch their results within a time.

    Each slot that ends in time is reported by `SlotEnded`; `FinalReportsCollected` comes last.
    """

    slots: tuple[str, ...]
    failure: str
    within_s: float


@dataclass(frozen=True, slots=True)
class FetchResults:
    """Fetch the rows of these collect sinks, and end the tuner; answer `ResultsFetched`."""

    sinks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class End:
    """Release every process and CPU. No action follows.

    Attributes:
        status: "done", "stopped" or "failed".
        cause: reason why the job has failed; None if it has not.
    """

    status: str
    cause: Cause | None


Action: TypeAlias = CheckCluster | AskForDead | StopSlots | CollectFinalReports | FetchResults | End

"""What a job's host must do. It performs them in their order, and tells what came of it."""

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
    """Find out whether who starts and ends slots is there: `ClusterThere` or `ClusterGone`."""


@dataclass(frozen=True, slots=True)
class AskForDead:
    """Ask which of these nodes are known to be gone; answer `DeadNodes`, also with none."""

    node_ids: tuple[str, ...]
    within_s: float


@dataclass(frozen=True, slots=True)
class StopSlots:
    """Tell these slots to end, and do not wait.

    Attributes:
        slots: those that live.
        failure: why the job has failed; None: its user wants its end, so sinks publish all that
            they have.
    """

    slots: tuple[str, ...]
    failure: str | None


@dataclass(frozen=True, slots=True)
class CollectFinalReports:
    """Stop these slots without the cluster, and fetch their results, all within this time.

    Whoever ends in time is told by `SlotEnded`; answer `FinalReportsCollected` then.
    """

    slots: tuple[str, ...]
    failure: str
    within_s: float


@dataclass(frozen=True, slots=True)
class FetchResults:
    """Fetch what these collect sinks have gathered, and let go of the tuner: `ResultsFetched`."""

    sinks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class End:
    """Let go of every process and CPU. Nothing follows.

    Attributes:
        status: "done", "stopped" or "failed".
        cause: why it has failed; None: it has not.
    """

    status: str
    cause: Cause | None


Action: TypeAlias = CheckCluster | AskForDead | StopSlots | CollectFinalReports | FetchResults | End

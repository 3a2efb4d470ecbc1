"""The life of a job as a machine: what its host hears goes in, what the host must do comes out."""

from runtime.life.actions import (
    Action,
    AskForDead,
    CheckCluster,
    End,
    FetchResults,
    HearLastWords,
    StopSlots,
)
from runtime.life.cause import Cause, HomeNode, lost_cluster, lost_peer
from runtime.life.machine import JobLife
from runtime.life.patience import Patience
from runtime.life.stimuli import (
    ClusterGone,
    ClusterThere,
    DeadNodes,
    HostSilent,
    LastWordsHeard,
    ResultsFetched,
    SlotDied,
    SlotEnded,
    Stimulus,
    StopAsked,
    TimePassed,
)

__all__ = [
    "Action",
    "AskForDead",
    "Cause",
    "CheckCluster",
    "ClusterGone",
    "ClusterThere",
    "DeadNodes",
    "End",
    "FetchResults",
    "HearLastWords",
    "HomeNode",
    "HostSilent",
    "JobLife",
    "LastWordsHeard",
    "Patience",
    "ResultsFetched",
    "SlotDied",
    "SlotEnded",
    "Stimulus",
    "StopAsked",
    "StopSlots",
    "TimePassed",
    "lost_cluster",
    "lost_peer",
]

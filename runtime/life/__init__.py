"""Life of a job as a machine: its host's stimuli in, actions out."""

from slackwater.runtime.life.actions import (
    Action,
    AskForDead,
    CheckCluster,
    CollectFinalReports,
    End,
    FetchResults,
    StopSlots,
)
from slackwater.runtime.life.cause import Cause, HomeNode, lost_cluster
from slackwater.runtime.life.machine import JobLife
from slackwater.runtime.life.stimuli import (
    ClusterGone,
    ClusterThere,
    DeadNodes,
    FinalReportsCollected,
    HostSilent,
    ResultsFetched,
    SlotDied,
    SlotEnded,
    Stimulus,
    StopRequested,
    TimePassed,
)
from slackwater.runtime.life.time_limits import TimeLimits

__all__ = [
    "Action",
    "AskForDead",
    "Cause",
    "CheckCluster",
    "ClusterGone",
    "ClusterThere",
    "CollectFinalReports",
    "DeadNodes",
    "End",
    "FetchResults",
    "FinalReportsCollected",
    "HomeNode",
    "HostSilent",
    "JobLife",
    "ResultsFetched",
    "SlotDied",
    "SlotEnded",
    "Stimulus",
    "StopRequested",
    "StopSlots",
    "TimeLimits",
    "TimePassed",
    "lost_cluster",
]

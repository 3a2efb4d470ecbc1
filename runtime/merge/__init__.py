"""Merging in event-time order: promises, their frontier, and Slack-ScaleGate."""

from runtime.merge.frontier import Frontier
from runtime.merge.gate import SlackGate
from runtime.merge.reader import Cut, Key
from runtime.merge.replica import Partitioner, ReplicaReads
from runtime.merge.waits import WaitLog
from runtime.merge.writer import Writer

__all__ = [
    "Cut",
    "Frontier",
    "Key",
    "Partitioner",
    "ReplicaReads",
    "SlackGate",
    "WaitLog",
    "Writer",
]

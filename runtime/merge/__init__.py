"""Merging in event-time order: Slack-ScaleGate."""

from slackwater.runtime.merge.gate import SlackGate
from slackwater.runtime.merge.reader import Cut, Key
from slackwater.runtime.merge.replica import ReadSplitter, ReplicaReads
from slackwater.runtime.merge.waits import WaitLog
from slackwater.runtime.merge.writer import Writer

__all__ = [
    "Cut",
    "Key",
    "ReadSplitter",
    "ReplicaReads",
    "SlackGate",
    "WaitLog",
    "Writer",
]

"""Merging in event-time order: promises, their frontier, and Slack-ScaleGate."""

from runtime.merge.frontier import Frontier
from runtime.merge.gate import SlackGate
from runtime.merge.reader import Cut, Key
from runtime.merge.replica import Dealer, ReplicaReads
from runtime.merge.waits import WaitLog
from runtime.merge.writer import Writer

__all__ = ["Cut", "Dealer", "Frontier", "Key", "ReplicaReads", "SlackGate", "WaitLog", "Writer"]

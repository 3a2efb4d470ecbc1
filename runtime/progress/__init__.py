"""How far a stream has come, and when a stage next has work."""

from slackwater.runtime.progress.frontier import Frontier
from slackwater.runtime.progress.frontier_of_rows import frontier_of_rows
from slackwater.runtime.progress.wakeup import Wakeup

__all__ = ["Frontier", "Wakeup", "frontier_of_rows"]

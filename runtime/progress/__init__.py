"""How far a stream has come, and when a stage next has work."""

from slackwater.runtime.progress.wakeup import Wakeup

__all__ = ["Wakeup"]

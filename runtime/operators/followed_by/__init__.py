"""`followed_by`: an event, and the next of its key that follows it; as far as clocks can tell.

| page | what it has |
| --- | --- |
| `step.py`, `stream.py` | what a user writes, and what it is to the flow |
| `machine.py` | rows in, matches out |
| `held.py` | the events that wait for others |
| `before.py` | who came before whom, and who may be the first that follows |
"""

from slackwater.runtime.operators.followed_by.stream import FollowedBy

__all__ = ["FollowedBy"]

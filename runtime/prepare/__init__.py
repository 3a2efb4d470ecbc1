"""From a flow to a plan that may run, or may not: the same for all who take flows.

| page | what it says |
| --- | --- |
| `prepare.py` | the one way there: checks, placement, fingerprints, settings, verdict |
"""

from slackwater.runtime.prepare.prepare import admit, prepare

__all__ = ["admit", "prepare"]

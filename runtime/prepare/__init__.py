"""Preparation of a flow: from a flow to its plan and verdict, on both hosts.

| file | content |
| --- | --- |
| `prepare.py` | all steps: checks, placement, fingerprints, settings, verdict |
"""

from slackwater.runtime.prepare.prepare import admit, prepare

__all__ = ["admit", "prepare"]

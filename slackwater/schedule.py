"""Orders of work in a slot (docs/custom-rules.md)."""

from slackwater.runtime.schedule import (
    CoarseStimulus,
    PathView,
    Priorities,
    StageView,
    StimulusOrder,
)

__all__ = ["CoarseStimulus", "PathView", "Priorities", "StageView", "StimulusOrder"]

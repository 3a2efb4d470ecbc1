"""Rules of gates, and what a custom policy is shown and returns (docs/custom-policy.md)."""

from slackwater.runtime.control.commands import Command, SetRelease, Warn
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import ON_ARRIVAL, READY_ONLY, ReleaseRule
from slackwater.runtime.model.subject import Subject

__all__ = [
    "ON_ARRIVAL",
    "READY_ONLY",
    "Command",
    "FlowGraph",
    "ReleaseRule",
    "SetRelease",
    "StageSample",
    "Subject",
    "Warn",
]

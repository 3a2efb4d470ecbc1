"""Control loop of both hosts: samples in, commands out.

| file | what it says |
| --- | --- |
| `graph.py` | a flow's steps as deciders see them |
| `commands.py` | commands to a slot while it runs |
| `deciders.py` | several deciders, and which of them prevails |
| `rest.py` | latency that events still have downstream of a step that sheds |
| `loop.py` | rounds of samples, decisions and commands; the state for a successor |
"""

from slackwater.runtime.control.commands import Command, Move, SetRelease, Shed, Warn
from slackwater.runtime.control.deciders import Wanted, settled
from slackwater.runtime.control.graph import FlowGraph, PlacedPart, StepNode
from slackwater.runtime.control.loop import (
    Action,
    Ask,
    ControlLoop,
    Decide,
    Decider,
    LoopState,
    Tell,
    WakeAt,
    name_of,
)
from slackwater.runtime.control.rest import RestBehind

__all__ = [
    "Action",
    "Ask",
    "Command",
    "ControlLoop",
    "Decide",
    "Decider",
    "FlowGraph",
    "LoopState",
    "Move",
    "PlacedPart",
    "RestBehind",
    "SetRelease",
    "Shed",
    "StepNode",
    "Tell",
    "WakeAt",
    "Wanted",
    "Warn",
    "name_of",
    "settled",
]

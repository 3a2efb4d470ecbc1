"""One control loop for both hosts: samples in, commands out.

| file | what it says |
| --- | --- |
| `graph.py` | a flow as those who decide see it |
| `commands.py` | what a slot may be told while it runs |
| `deciders.py` | several who decide, and whose word prevails |
| `rest.py` | what events still take behind a stage that sheds |
| `loop.py` | who is asked when, what is decided on, who is told what; what a successor must know |
"""

from slackwater.runtime.control.commands import Command, Move, SetRelease, Shed, Warn
from slackwater.runtime.control.deciders import Wanted, settled
from slackwater.runtime.control.graph import FlowGraph, StageNode
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
    "RestBehind",
    "SetRelease",
    "Shed",
    "StageNode",
    "Tell",
    "WakeAt",
    "Wanted",
    "Warn",
    "name_of",
    "settled",
]

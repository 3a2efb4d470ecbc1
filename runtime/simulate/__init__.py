"""Simulator: the same machines in virtual time, with costs, links, faults and a seed."""

from slackwater.runtime.simulate.faults import (
    ClusterGoes,
    Fault,
    HostFallsSilent,
    SlotDies,
    SlotHangs,
    SlotRaises,
    UserStops,
    any_faults,
)
from slackwater.runtime.simulate.host import Simulation
from slackwater.runtime.simulate.models import (
    CostModel,
    LinkModel,
    MeasuredCost,
    MeasuredSlice,
    NotedCost,
    TunerModel,
)
from slackwater.runtime.simulate.recovery import Checkpoints
from slackwater.runtime.simulate.replacing import Replace

__all__ = [
    "Checkpoints",
    "ClusterGoes",
    "CostModel",
    "Fault",
    "HostFallsSilent",
    "LinkModel",
    "MeasuredCost",
    "MeasuredSlice",
    "NotedCost",
    "Replace",
    "Simulation",
    "SlotDies",
    "SlotHangs",
    "SlotRaises",
    "TunerModel",
    "UserStops",
    "any_faults",
]

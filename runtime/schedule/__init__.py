"""Stimulus-time scheduling: queues per path, stages, and the slot that runs them."""

from slackwater.runtime.schedule.actions import Action, Egress, Grant, Rest, Send, Slice
from slackwater.runtime.schedule.order import Order, PathOrder, PathView, StageView, StimulusOrder
from slackwater.runtime.schedule.orders import CoarseStimulus, Priorities
from slackwater.runtime.schedule.rearranged import bytes_of, rearranged, rearranged_results
from slackwater.runtime.schedule.results import (
    SinkPort,
    SlotResults,
    carry_out,
    rest_of,
)
from slackwater.runtime.schedule.slot import Slot
from slackwater.runtime.schedule.stage import StageMachine
from slackwater.runtime.schedule.stimulus_log import LoggedSlot, make_slot, replay, replaying

__all__ = [
    "Action",
    "CoarseStimulus",
    "Egress",
    "Grant",
    "LoggedSlot",
    "Order",
    "PathOrder",
    "PathView",
    "Priorities",
    "Rest",
    "Send",
    "SinkPort",
    "Slice",
    "Slot",
    "SlotResults",
    "StageMachine",
    "StageView",
    "StimulusOrder",
    "bytes_of",
    "carry_out",
    "make_slot",
    "rearranged",
    "rearranged_results",
    "replay",
    "replaying",
    "rest_of",
]

"""Stimulus-time scheduling: queues per path, stages, and the slot that runs them."""

from runtime.schedule.order import Order, StageView, StimulusOrder
from runtime.schedule.slot import Action, Egress, Grant, Rest, Send, Slice, Slot
from runtime.schedule.stage import StageMachine
from runtime.schedule.stimulus_log import LoggedSlot, make_slot, replay, replaying

__all__ = [
    "Action",
    "Egress",
    "Grant",
    "LoggedSlot",
    "Order",
    "Rest",
    "Send",
    "Slice",
    "Slot",
    "StageMachine",
    "StageView",
    "StimulusOrder",
    "make_slot",
    "replay",
    "replaying",
]

"""Stimulus-time scheduling: queues per path, stages, and the slot that runs them."""

from runtime.schedule.order import Order, PathOrder, PathView, StageView, StimulusOrder
from runtime.schedule.slot import Action, Egress, Grant, Rest, Send, Slice, Slot
from runtime.schedule.stage import StageMachine

__all__ = [
    "Action",
    "Egress",
    "Grant",
    "Order",
    "PathOrder",
    "PathView",
    "Rest",
    "Send",
    "Slice",
    "Slot",
    "StageMachine",
    "StageView",
    "StimulusOrder",
]

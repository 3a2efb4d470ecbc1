"""Policies by which windows close in time (docs/closing.md)."""

from slackwater.runtime.closing.words import event_driven, ignore, mean_delay, probslack

__all__ = ["event_driven", "ignore", "mean_delay", "probslack"]

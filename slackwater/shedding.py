"""Shedding: events that a pattern drops under load (docs/overload.md)."""

from slackwater.runtime.shedding import baseline_shedding, espice, random_shedding

__all__ = ["baseline_shedding", "espice", "random_shedding"]

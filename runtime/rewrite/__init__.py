"""Rewrites of a flow that keep its results, and the search among them.

Source: [mace] §IX-A. Why these: docs/decisions/2026-11-23-plan-selection.md.
"""

from slackwater.runtime.rewrite.moves import (
    Before,
    FlowPlan,
    Rewrite,
    Share,
    Split,
    rewrites_of,
    split_all,
    thinkable,
)

__all__ = [
    "Before",
    "FlowPlan",
    "Rewrite",
    "Share",
    "Split",
    "rewrites_of",
    "split_all",
    "thinkable",
]

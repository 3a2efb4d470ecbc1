"""Rivals of the tuner that split the deadline evenly, and that the tuner does not try.

`Tuning(policy=…)` takes each, as it takes every function that makes a policy from a flow's graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.tune import Paths, SlackPolicy
from slackwater.runtime.tune.decide.policies import (
    EvenSplit,
    Expects,
    deadline_margin_ns,
    the_last,
    the_most,
)

LAST_SPLIT, HELD_SPLIT = "even split, last second", "even split, by the clock"


def rival_split(graph: FlowGraph, *, name: str, expects: Expects, holds: bool) -> SlackPolicy:
    """Return an even split of a flow's deadline, with what every rule keeps back.

    Args:
        graph: of a flow with a deadline.
        name: what reports call it.
        expects: what to expect of each stage of the rest.
        holds: whether shares are holds by the clock, not slacks.
    """
    assert graph.deadline_ns is not None, "an experiment has a deadline"
    return EvenSplit(
        Paths.of(graph),
        deadline_ns=graph.deadline_ns,
        name=name,
        expects=expects,
        holds=holds,
        margin_ns=deadline_margin_ns(graph.deadline_ns),
    )


RIVALS: Mapping[str, Callable[[FlowGraph], SlackPolicy]] = {
    LAST_SPLIT: partial(rival_split, name=LAST_SPLIT, expects=the_last, holds=False),
    HELD_SPLIT: partial(rival_split, name=HELD_SPLIT, expects=the_most, holds=True),
}

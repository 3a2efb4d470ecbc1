"""Check of a user's `tuning=`, before the job starts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from slackwater.runtime.config import Tuning
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import duration_ns, format_ns
from slackwater.runtime.shown import a_kind, shown
from slackwater.runtime.tune.decide.make import make_policy

if TYPE_CHECKING:
    from slackwater.runtime.plan.plan import Plan

LEAST_NS = 50_000_000
"""Least interval: slots are asked 20 ms after its end, and have half of it to answer."""


def chosen_tuning(plan: Plan, tuning: Tuning | None) -> Tuning | None:
    """Return the tuning of a plan; None if it has no slack to tune.

    Raises:
        SettingError: `tuning` is of another type, names no policy or one that its interval does
            not fit, or the flow has no deadline.
    """
    if tuning is not None and not isinstance(tuning, Tuning):
        raise SettingError(
            f"flow {plan.flow!r}: tuning={shown(tuning)} is {a_kind(tuning)}; write "
            "tuning=sw.Tuning(probability=0.95), say"
        )
    if plan.deadline_ns is None:
        if tuning is not None:
            raise SettingError(
                f"flow {plan.flow!r} has no deadline, and tuning= says how one is kept; write "
                'Dataflow(name, deadline="6s"), or leave tuning= out'
            )
        return None
    tuning = tuning or Tuning()
    what = f"flow {plan.flow!r}: interval"
    if duration_ns(tuning.interval, what=what, positive=True) < LEAST_NS:
        raise SettingError(
            f"{what}={shown(tuning.interval)} must be at least {format_ns(LEAST_NS)}: slots are "
            "asked for their samples as often, over the network; write interval='1s', say"
        )
    graph = FlowGraph.of(replace(plan, tuning=tuning))
    return None if make_policy(graph, tuning) is None else tuning

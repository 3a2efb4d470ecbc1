"""What a user asked for, checked before anything is started."""

from __future__ import annotations

from runtime.config import Tuning
from runtime.control.graph import FlowGraph
from runtime.errors import SettingError
from runtime.plan.plan import Plan
from runtime.tune.decide.make import make_policy


def chosen_tuning(plan: Plan, tuning: Tuning | None) -> Tuning | None:
    """Return how the slacks of a plan are to be set; None: it has none to be set.

    Raises:
        SettingError: `tuning` is none, names no policy, or there is no deadline for it.
    """
    if tuning is not None and not isinstance(tuning, Tuning):
        raise SettingError(
            f"flow {plan.flow!r}: tuning={tuning!r} is a {type(tuning).__name__}; write "
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
    return None if make_policy(FlowGraph.of(plan), tuning) is None else tuning

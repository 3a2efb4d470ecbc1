"""What of a plan does not pickle, named: a plan goes to other processes, users' objects in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ray import cloudpickle

from runtime.errors import FlowError
from runtime.plan.plan import Plan
from runtime.plan.steps import SinkStep, SourceStep

__all__ = ["not_picklable", "pickled"]


def pickled(plan: Plan) -> bytes:
    """Return a plan as bytes.

    Raises:
        FlowError: something in it does not pickle; says what.
    """
    try:
        made: bytes = cloudpickle.dumps(plan)  # type: ignore[no-untyped-call]
    except Exception as problem:  # an object of the user's may raise anything
        raise not_picklable(plan, problem) from problem
    return made


def not_picklable(plan: Plan, problem: Exception) -> FlowError:
    """Return the error that names what of a plan does not pickle; `problem` is what was raised."""
    for what, held in _parts(plan):
        try:
            cloudpickle.dumps(held)  # type: ignore[no-untyped-call]
        except Exception as found:
            return _error(plan, f"{what} ({type(held).__name__})", found)
    return _error(plan, "something in it", problem)


def _parts(plan: Plan) -> Iterator[tuple[str, Any]]:
    for stage in plan.stages:
        step = stage.step
        if isinstance(step, SourceStep):
            yield f"the input of source {step.name!r}", step.source.input
            yield f"out_of_order= of source {step.name!r}", step.source.reorder
        if isinstance(step, SinkStep):
            yield f"the output of sink {step.name!r}", step.output
        for one in (step, *stage.chain):
            yield f"step {one.name!r}", one
    yield "Limits(order=)", plan.limits.order
    yield "Tuning(policy=)", None if plan.tuning is None else plan.tuning.policy


def _error(plan: Plan, what: str, problem: Exception) -> FlowError:
    said = f"{type(problem).__name__}: {problem}".splitlines()[0]
    return FlowError(
        f"flow {plan.flow!r} cannot be sent to its slots: {what} does not pickle ({said}). Keep "
        "open files, connections and locks out of it: make them where it runs"
    )

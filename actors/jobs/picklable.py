"""What of a plan does not pickle, named: a plan goes to other processes, users' objects in it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields
from types import FunctionType, MethodType
from typing import Any

from ray import cloudpickle

from slackwater.runtime.errors import FlowError
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import SinkStep, SourceStep

__all__ = ["check_picklable", "not_picklable", "pickled"]


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


def check_picklable(plan: Plan) -> None:
    """Check that a plan could go to a cluster's slots; tables in it are not copied.

    Raises:
        FlowError: something in it does not pickle; says what.
    """
    try:
        _try(plan)
    except Exception as problem:  # an object of the user's may raise anything
        raise not_picklable(plan, problem) from problem


def not_picklable(plan: Plan, problem: Exception) -> FlowError:
    """Return the error that names what of a plan does not pickle; `problem` is what was raised."""
    for what, held in _parts(plan):
        found = _problem(held)
        if found is not None:
            return _error(plan, f"{what} ({_name(held)})", found, _inside(held))
    return _error(plan, "something in it", problem, "")


def _try(held: object) -> None:
    cloudpickle.dumps(held, protocol=5, buffer_callback=lambda _: False)  # type: ignore[no-untyped-call]


def _problem(held: object) -> Exception | None:
    """Return what pickling an object raises; None: it pickles."""
    try:
        _try(held)
    except Exception as found:
        return found
    return None


def _parts(plan: Plan) -> Iterator[tuple[str, Any]]:
    for stage in plan.stages:
        step = stage.step
        if isinstance(step, SourceStep):
            yield f"the input of source {step.name!r}", step.source.input
            yield f"out_of_order= of source {step.name!r}", step.source.reorder
        if isinstance(step, SinkStep):
            yield f"the output of sink {step.name!r}", step.output
        for one in (step, *stage.chain):
            yield from _parts_of(one)
    yield "Limits(order=)", plan.limits.order
    if plan.tuning is not None:
        yield "Tuning(policy=)", plan.tuning.policy
        yield "Tuning(predictor=)", plan.tuning.predictor


def _parts_of(step: Step) -> Iterator[tuple[str, Any]]:
    """Yield what a step was given, then the step."""
    for field in fields(step):
        yield f"the {field.name} of step {step.name!r}", getattr(step, field.name)
    yield f"step {step.name!r}", step


def _name(held: object) -> str:
    """Return the name of a function, or of an object's class."""
    name = getattr(held, "__qualname__", None)
    return name if isinstance(name, str) else type(held).__name__


def _inside(held: object) -> str:
    """Return the first thing that a function or an object uses and that does not pickle, named."""
    for name, used in _used(held).items():
        if _problem(used) is not None:
            return f" because of {name!r}, a {type(used).__name__}"
    return ""


def _used(held: object) -> dict[str, object]:
    if isinstance(held, MethodType):
        return {"self": held.__self__}
    if isinstance(held, FunctionType):
        outer = inspect.getclosurevars(held)
        return {**outer.nonlocals, **outer.globals}
    return dict(getattr(held, "__dict__", {}))


def _error(plan: Plan, what: str, problem: Exception, inside: str) -> FlowError:
    said = f"{type(problem).__name__}: {problem}".splitlines()[0]
    return FlowError(
        f"flow {plan.flow!r} cannot be sent to its slots: {what} does not pickle{inside} ({said}). "
        "Keep open files, connections and locks out of it: make them where it runs"
    )

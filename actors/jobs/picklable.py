"""Name the part of a plan that does not pickle: plans carry users' objects elsewhere."""

from __future__ import annotations

import inspect
import io
from collections.abc import Iterator
from dataclasses import fields
from types import FunctionType, MethodType
from typing import Any

import pyarrow as pa
from ray import cloudpickle

from slackwater.actors.nodes.in_band import copied
from slackwater.runtime.errors import FlowError
from slackwater.runtime.model.arrow_streams import block_of, stream_of
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import SinkStep, SourceStep
from slackwater.runtime.shown import a_kind, in_words

__all__ = ["check_picklable", "copied_plan", "not_picklable", "pickled"]


def pickled(plan: Plan) -> bytes:
    """Return a plan as bytes.

    Raises:
        FlowError: a part of the plan does not pickle; names it.
    """
    stream = io.BytesIO()
    try:
        _Pickler(stream, protocol=5).dump(plan)  # type: ignore[no-untyped-call]
    except Exception as problem:  # an object of the user's may raise anything
        raise not_picklable(plan, problem) from problem
    return stream.getvalue()


class _Pickler(cloudpickle.CloudPickler):
    """Pickles parts of tables: Arrow's own pickle of a part has the whole table."""

    def reducer_override(self, held: Any) -> Any:
        if isinstance(held, pa.RecordBatch | pa.Table):
            return _rows_of, (bytes(stream_of(held)), isinstance(held, pa.Table))
        return super().reducer_override(held)  # type: ignore[no-untyped-call]


def _rows_of(data: bytes, is_table: bool) -> pa.RecordBatch | pa.Table:
    if not is_table:
        return block_of(data)
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def check_picklable(plan: Plan) -> None:
    """Check that a plan pickles for a cluster's slots; copies no tables.

    Raises:
        FlowError: a part of the plan does not pickle; names it.
    """
    try:
        copied(plan)
    except Exception as problem:  # an object of the user's may raise anything
        raise not_picklable(plan, problem) from problem


def copied_plan(plan: Plan) -> Plan:
    """Return a plan of copies, as a cluster's slots get it; outputs are shared.

    Raises:
        FlowError: a part of the plan does not pickle; names it.
    """
    outputs = [stage.step.output for stage in plan.stages if isinstance(stage.step, SinkStep)]
    try:
        copied(outputs)  # a cluster copies them, too
        return copied(plan, shared=outputs)
    except Exception as problem:  # an object of the user's may raise anything
        raise not_picklable(plan, problem) from problem


def not_picklable(plan: Plan, problem: Exception) -> FlowError:
    """Return the error that names the part that does not pickle; `problem` was raised."""
    for what, held in _parts(plan):
        cause = _problem(held)
        if cause is not None:
            return _error(plan, f"{what} ({_name(held)})", cause, _inside(held))
    return _error(plan, "something in it", problem, "")


def _problem(held: object) -> Exception | None:
    try:
        copied(held)
    except Exception as problem:
        return problem
    return None


def _parts(plan: Plan) -> Iterator[tuple[str, Any]]:
    for stage in plan.stages:
        step = stage.step
        if isinstance(step, SourceStep):
            yield f"the input of source {step.name!r}", step.source.input
            yield f"out_of_order= of source {step.name!r}", step.source.reorder
        if isinstance(step, SinkStep):
            yield f"the output of sink {step.name!r}", step.output
        for link in (step, *stage.chain):
            yield from _parts_of(link)
    yield "Limits(order=)", plan.limits.order
    if plan.tuning is not None:
        yield "Tuning(policy=)", plan.tuning.policy
        yield "Tuning(predictor=)", plan.tuning.predictor


def _parts_of(step: Step) -> Iterator[tuple[str, Any]]:
    for field in fields(step):
        yield f"the {field.name} of step {step.name!r}", getattr(step, field.name)
    yield f"step {step.name!r}", step


def _name(held: object) -> str:
    name = getattr(held, "__qualname__", None)
    return name if isinstance(name, str) else type(held).__name__


def _inside(held: object) -> str:
    for name, used in _used(held).items():
        if _problem(used) is not None:
            return f" because of {name!r}, {a_kind(used)}"
    return ""


def _used(held: object) -> dict[str, object]:
    if isinstance(held, MethodType):
        return {"self": held.__self__}
    if isinstance(held, FunctionType):
        outer = inspect.getclosurevars(held)
        return {**outer.nonlocals, **outer.globals}
    return dict(getattr(held, "__dict__", {}))


def _error(plan: Plan, what: str, problem: Exception, inside: str) -> FlowError:
    reason = in_words(problem).splitlines()[0]
    return FlowError(
        f"flow {plan.flow!r} cannot be sent to its slots: {what} does not pickle{inside} "
        f"({reason}); keep open files, connections and locks out of it: make them where it runs"
    )

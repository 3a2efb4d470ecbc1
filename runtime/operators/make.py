"""Which machine does a step's work."""

from __future__ import annotations

from runtime.config import Limits
from runtime.errors import FlowError
from runtime.operators.aggregate import AggregateMachine
from runtime.operators.contract import Operator, Stateless
from runtime.operators.join import JoinMachine
from runtime.operators.stateless import (
    AssignMachine,
    FilterMachine,
    MapBatchesMachine,
    MapRowsMachine,
    PassMachine,
    SelectMachine,
)
from runtime.plan.steps import (
    AggregateStep,
    AssignStep,
    FilterStep,
    JoinStep,
    LateStep,
    MapBatchesStep,
    MapRowsStep,
    SelectStep,
    Step,
)


def make_operator(step: Step, *, most_kept_rows: int = Limits.most_kept_rows) -> Operator:
    """Return a fresh machine for a step that keeps state behind a gate.

    Args:
        step: what it does.
        most_kept_rows: see Limits.

    Raises:
        FlowError: a step of another kind.
    """
    match step:
        case JoinStep():
            return JoinMachine(step, most_kept_rows=most_kept_rows)
        case AggregateStep():
            return AggregateMachine(step, most_kept_rows=most_kept_rows)
    raise FlowError(
        f"step {step.name!r} ({type(step).__name__}) keeps no state; "
        "make_operator takes joins and aggregates, make_stateless filters, assigns, selects, maps"
    )


def make_stateless(step: Step) -> Stateless:
    """Return a machine for a step that looks at each row alone.

    Raises:
        FlowError: a step of another kind.
    """
    match step:
        case FilterStep():
            return FilterMachine(step)
        case AssignStep():
            return AssignMachine(step)
        case SelectStep():
            return SelectMachine(step)
        case MapBatchesStep():
            return MapBatchesMachine(step)
        case MapRowsStep():
            return MapRowsMachine(step)
        case LateStep():
            return PassMachine()
    raise FlowError(
        f"step {step.name!r} ({type(step).__name__}) does not look at each row alone; "
        "make_stateless takes filters, assigns, selects and maps"
    )

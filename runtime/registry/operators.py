"""The registry of operators: the methods of streams, and the machine of each step.

An operator is its file or folder, and its lines here. Its step says what the plan needs
(`runtime/plan/step.py`), its machine keeps the contract in `runtime/operators/ground/contract.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slackwater.runtime.config import Limits
from slackwater.runtime.errors import FlowError
from slackwater.runtime.operators.aggregate.combine import CombineMachine
from slackwater.runtime.operators.aggregate.interval_machine import IntervalMachine
from slackwater.runtime.operators.aggregate.over_machine import over_machine
from slackwater.runtime.operators.aggregate.over_step import OverStep, RowsOver
from slackwater.runtime.operators.aggregate.step import AggregateStep, Aggregating, CombineStep
from slackwater.runtime.operators.aggregate.three_windows import aggregate_machine
from slackwater.runtime.operators.aggregate.totals_machine import TotalsMachine
from slackwater.runtime.operators.aggregate.totals_step import TotalsStep
from slackwater.runtime.operators.aggregate.window_step import IntervalStep
from slackwater.runtime.operators.dedupe.machine import DedupeMachine
from slackwater.runtime.operators.dedupe.step import DedupeStep, Deduping
from slackwater.runtime.operators.each_row.changes import (
    ChangesMachine,
    ChangesStep,
    Changing,
    ShownChangesMachine,
    ShownChangesStep,
)
from slackwater.runtime.operators.each_row.columns import (
    Selecting,
    SelectMachine,
    SelectStep,
    WithColumns,
    WithColumnsMachine,
    WithColumnsStep,
)
from slackwater.runtime.operators.each_row.explode import ExplodeMachine, ExplodeStep, Exploding
from slackwater.runtime.operators.each_row.filter import Filtering, FilterMachine, FilterStep
from slackwater.runtime.operators.each_row.functions import (
    CallingFunctions,
    FlatMapMachine,
    FlatMapStep,
    MapBatchesMachine,
    MapBatchesStep,
    MapRowsMachine,
    MapRowsStep,
)
from slackwater.runtime.operators.followed_by.machine import FollowedByMachine
from slackwater.runtime.operators.followed_by.step import FollowedBy, FollowedByStep
from slackwater.runtime.operators.ground.contract import Operator, Stateless
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.operators.join.asof import AsofJoining, AsofStep
from slackwater.runtime.operators.join.asof_machine import AsofMachine
from slackwater.runtime.operators.join.fresh import FreshMachine, FreshStep
from slackwater.runtime.operators.join.lookup import LookingUp, LookupMachine, LookupStep
from slackwater.runtime.operators.join.step import Joining, JoinStep
from slackwater.runtime.operators.join.table_join import TableJoinStep
from slackwater.runtime.operators.join.table_join_machine import TableJoinMachine
from slackwater.runtime.operators.join.uncertain import join_machine
from slackwater.runtime.operators.limit.limit import Limiting, LimitMachine, LimitStep
from slackwater.runtime.operators.merge.merge import FlowMerging, MergeMachine, MergeStep, Merging
from slackwater.runtime.operators.process.machine import ProcessMachine
from slackwater.runtime.operators.process.step import Processing, ProcessStep
from slackwater.runtime.operators.silence.machine import SilenceMachine
from slackwater.runtime.operators.silence.step import SilenceStep, Watching
from slackwater.runtime.operators.to_table.machine import ToTableMachine
from slackwater.runtime.operators.to_table.step import ToTables, ToTableStep
from slackwater.runtime.operators.top_k.machine import TopKMachine
from slackwater.runtime.operators.top_k.step import Ranking, TopKStep
from slackwater.runtime.patterns.operator.machine import pattern_machine
from slackwater.runtime.patterns.operator.step import PatternStep
from slackwater.runtime.patterns.operator.stream import Patterning
from slackwater.runtime.plan.step import EachRowStep, Step


class StreamMethods(
    Filtering,
    WithColumns,
    Selecting,
    Exploding,
    CallingFunctions,
    Changing,
    Merging,
    Aggregating,
    RowsOver,
    Joining,
    LookingUp,
    AsofJoining,
    Deduping,
    ToTables,
    Ranking,
    Limiting,
    Watching,
    FollowedBy,
    Patterning,
    Processing,
    AnyStream,
):
    """The operators of a stream."""


class FlowMethods(
    FlowMerging,
):
    """The operators of several streams of a flow."""


MACHINES: dict[type[Step], Callable[..., Any]] = {
    FilterStep: FilterMachine,
    WithColumnsStep: WithColumnsMachine,
    SelectStep: SelectMachine,
    ExplodeStep: ExplodeMachine,
    MapBatchesStep: MapBatchesMachine,
    MapRowsStep: MapRowsMachine,
    FlatMapStep: FlatMapMachine,
    ChangesStep: ChangesMachine,
    ShownChangesStep: ShownChangesMachine,
    LookupStep: LookupMachine,
    FreshStep: FreshMachine,
    MergeStep: MergeMachine,
    AggregateStep: aggregate_machine,
    IntervalStep: IntervalMachine,
    OverStep: over_machine,
    TotalsStep: TotalsMachine,
    CombineStep: CombineMachine,
    JoinStep: join_machine,
    TableJoinStep: TableJoinMachine,
    ToTableStep: ToTableMachine,
    AsofStep: AsofMachine,
    DedupeStep: DedupeMachine,
    TopKStep: TopKMachine,
    LimitStep: LimitMachine,
    SilenceStep: SilenceMachine,
    FollowedByStep: FollowedByMachine,
    PatternStep: pattern_machine,
    ProcessStep: ProcessMachine,
}
"""{class of step: maker of its machine}: of a `Stateless` for a step that looks at each row alone;
of an `Operator`, with `most_kept_rows=` (see Limits), for others."""


def make_operator(step: Step, *, most_kept_rows: int = Limits.most_kept_rows) -> Operator:
    """Return a fresh machine for a step after a gate.

    Args:
        step: the step of the machine.
        most_kept_rows: limit of the same name, see Limits.

    Raises:
        FlowError: a step of another kind.
    """
    machine: Operator = _maker_of(step, is_each_row=False)(step, most_kept_rows=most_kept_rows)
    return machine


def make_stateless(step: Step) -> Stateless:
    """Return a machine for a step that looks at each row alone.

    Raises:
        FlowError: a step of another kind.
    """
    machine: Stateless = _maker_of(step, is_each_row=True)(step)
    return machine


def _maker_of(step: Step, *, is_each_row: bool) -> Callable[..., Any]:
    maker = MACHINES.get(type(step))
    if maker is None or isinstance(step, EachRowStep) is not is_each_row:
        what = "does not look at each row alone" if is_each_row else "keeps no state"
        takes = [
            other.__name__.removesuffix("Step")
            for other in MACHINES
            if issubclass(other, EachRowStep) is is_each_row
        ]
        raise FlowError(
            f"step {step.name!r} ({type(step).__name__}) {what}; here are machines for "
            f"{', '.join(takes)}"
        )
    return maker

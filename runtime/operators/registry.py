"""The registry of operators: a line for each method by which a stream gets one.

An operator is its folder and its line here. Its step says what the plan needs
(`runtime/plan/step.py`), its machine keeps the contract in `runtime/operators/ground/contract.py`.
"""

from __future__ import annotations

from slackwater.runtime.config import Limits
from slackwater.runtime.errors import FlowError
from slackwater.runtime.operators.aggregate import Aggregating
from slackwater.runtime.operators.dedupe import Deduping
from slackwater.runtime.operators.explode import Exploding
from slackwater.runtime.operators.filter import Filtering
from slackwater.runtime.operators.followed_by import FollowedBy
from slackwater.runtime.operators.ground.contract import Entry, Operator, Stateless
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.operators.join import Joining
from slackwater.runtime.operators.map_batches import MappingBatches
from slackwater.runtime.operators.map_rows import MappingRows
from slackwater.runtime.operators.merge import FlowMerging, Merging
from slackwater.runtime.operators.pattern import Patterning
from slackwater.runtime.operators.process import Processing
from slackwater.runtime.operators.select import Selecting
from slackwater.runtime.operators.with_columns import WithColumns
from slackwater.runtime.plan.step import EachRowStep, Step


class StreamMethods(
    Filtering,
    WithColumns,
    Selecting,
    Exploding,
    MappingBatches,
    MappingRows,
    Merging,
    Aggregating,
    Joining,
    Deduping,
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


ENTRIES: dict[type[Step], Entry] = {
    entry.step: entry
    for methods in (StreamMethods, FlowMethods)
    for one in methods.__mro__
    if isinstance(entry := vars(one).get("_entry"), Entry)
}
"""{class of step: its entry}."""


def make_operator(step: Step, *, most_kept_rows: int = Limits.most_kept_rows) -> Operator:
    """Return a fresh machine for a step after a gate.

    Args:
        step: the step of the machine.
        most_kept_rows: limit of the same name, see Limits.

    Raises:
        FlowError: a step of another kind.
    """
    machine: Operator = _entry_of(step, is_each_row=False).machine(
        step, most_kept_rows=most_kept_rows
    )
    return machine


def make_stateless(step: Step) -> Stateless:
    """Return a machine for a step that looks at each row alone.

    Raises:
        FlowError: a step of another kind.
    """
    machine: Stateless = _entry_of(step, is_each_row=True).machine(step)
    return machine


def _entry_of(step: Step, *, is_each_row: bool) -> Entry:
    entry = ENTRIES.get(type(step))
    if entry is None or issubclass(entry.step, EachRowStep) is not is_each_row:
        what = "does not look at each row alone" if is_each_row else "keeps no state"
        takes = [
            one.__name__.removesuffix("Step")
            for one in ENTRIES
            if issubclass(one, EachRowStep) is is_each_row
        ]
        raise FlowError(
            f"step {step.name!r} ({type(step).__name__}) {what}; here are machines for "
            f"{', '.join(takes)}"
        )
    return entry

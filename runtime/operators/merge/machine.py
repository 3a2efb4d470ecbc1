"""A merge returns rows as their gate releases them: late ones, then those in order."""

from __future__ import annotations

from slackwater.runtime.model import GateRead, concat_batches
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.ground.contract import PlainOperator, Result
from slackwater.runtime.operators.merge.step import MergeStep


class MergeMachine(PlainOperator):
    """The machine of a `MergeStep`: its gate does all the work.

    Attributes:
        rows_held: none.
        late_dropped: none: late rows leave, too.
    """

    STATE = Fields()

    def __init__(self, step: MergeStep, *, most_kept_rows: int) -> None:
        self.rows_held = 0
        self.late_dropped = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        late, batch = released.late[0], released.ports[0]
        if late is not None:
            batch = late if batch is None else concat_batches([late, batch])
        return Result(batch, released.progress.promise_ns)

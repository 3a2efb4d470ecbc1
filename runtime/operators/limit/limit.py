"""`limit`: its step, its machine, and the method that makes it.

```
limit 3    rows 1 4 │ 5 7 9     leaves 1 4 │ 5     and promises that nothing follows
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import END_NS, GateRead, Release, concat_batches
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.ground.contract import PlainOperator, Result
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import Role, StepTraits


@dataclass(frozen=True, kw_only=True)
class LimitStep(GatedStep):
    """The first rows leave, in the order of the stream; then it ends."""

    rows: int
    release: Release

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="limit",
            role=Role.AFTER_GATE,
            passes_on=True,
            takes_changes="revisions",
            release=self.release,
            has_late_rows=False,  # late rows count as others do
            misses="their place",
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return needed

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"gives    the first {self.rows:,} rows"


class LimitMachine(PlainOperator):
    """The machine of a `LimitStep`.

    Attributes:
        left: rows so far that have left.
        beyond_limit: rows so far that came after them.
        rows_held: none.
        late_dropped: none.
    """

    STATE = Fields("left", "beyond_limit")
    rows_held = late_dropped = 0

    def __init__(self, step: LimitStep, *, most_kept_rows: int) -> None:
        self._most = step.rows
        self.left = self.beyond_limit = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        batches = [batch for batch in (released.late[0], released.ports[0]) if batch is not None]
        rows = concat_batches(batches) if batches else None
        beyond = 0
        if rows is not None:
            leave = min(len(rows), self._most - self.left)
            beyond = len(rows) - leave
            rows = rows.slice(0, leave) if leave else None
            self.left += leave
            self.beyond_limit += beyond
        promise_ns = END_NS if self.left == self._most else released.progress.promise_ns
        return Result(rows, promise_ns, beyond_limit=beyond)

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        return {"beyond_limit": self.beyond_limit}


class Limiting(AnyStream):
    """Streams can be cut after some rows."""

    @checked_call
    def limit(self, rows: int, *, slack: Slack = AS_FLOW, name: str | None = None) -> Self:
        """Keep the first rows in the order of the stream, and end it.

        Windows and joins downstream close at once. Rows that come after them count as
        `beyond_limit` in the ledger; sources are still read to their end.

        Args:
            rows: the number of rows that leave.
            slack: how long its gate waits; AS_FLOW: as the flow says. With a slack, late rows
                count in the order in which they came.
            name: the name of the step.

        Raises:
            SettingError: `rows` is not positive.
        """
        name = self.flow.name_for("limit", name)
        if rows < 1:
            raise SettingError(f"step {name!r}: limit({rows}) leaves no row; write 1 or more")
        return self._add(
            LimitStep(
                name=name,
                inputs=self._in,
                schema=self.schema,
                rows=int(rows),
                release=self.flow.release_of(slack, step=name),
            )
        )

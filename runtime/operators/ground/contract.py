"""The contract of every operator; `GateRead`, in the model, is its input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from slackwater.runtime.expressions.row_tests import RowTests
from slackwater.runtime.model import Batch, GateRead
from slackwater.runtime.model.diverted import DivertedRow
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.ground.failed_rows import FailedRows
from slackwater.runtime.operators.ground.late_rows import LateRows, Missed


class Result(NamedTuple):
    """Result of one read.

    Attributes:
        rows: rows that leave, in event-time order; None if none leaves.
        promise_ns: the promise to downstream from now on.
        late: rows that could not count in full, if a step takes them.
        late_dropped: rows of the read that came too late to count in any result of theirs.
        compared: pairs that a join compared; of a pattern that sheds, see `Shedding.kept`.
        passed_over: rows that were not looked at; None if the operator looks at all.
        waited_ns: longest wait, by the clock, of the windows that closed; 0 if it is not known.
        due_ns: when the operator has work by the clock; None if no such time is known. It is called
            then, if not before, with a read without rows. Nothing is due after the end. Only an
            operator whose traits have `uses_clock` gives a time.
        failed: rows that a user's code could not use, where the job goes on.
        beyond_limit: rows that a limit left out.
    """

    rows: Batch | None
    promise_ns: int
    late: Sequence[LateRows] = ()
    late_dropped: int = 0
    compared: int = 0
    passed_over: int | None = None
    waited_ns: int = 0
    due_ns: int | None = None
    failed: Sequence[DivertedRow] = ()
    beyond_limit: int = 0


class Operator(Protocol):
    """An operator is a machine between a gate and the stages downstream.

    It is deterministic, without I/O or a clock of its own. Contract (`slackwater/testing.py` tries
    it): any cut of the same released order into reads gives the same rows in the same order, to the
    bit; save and restore change nothing; `rows_held` is zero after the end. An operator whose
    traits have `uses_clock` may use `now_ns`; all others ignore it.

    Attributes:
        STATE: fields that are saved, see `runtime/model/state.py`.
    """

    STATE: Fields

    def work(self, released: GateRead, now_ns: int) -> Result:
        """Take what a gate released; return the result of it.

        An operator that `passes_on` returns each row with the read that has it, or never.

        The stimulus time of each row is the latest of its lineage; for a window, of its
        rows and of the watermark that closed it. Source: [mace] Def. 2, NOTES.
        """
        ...

    def charge(self, took_ns: int, idle_ns: int) -> None:
        """Note how long the last slice took, and the slot's idle time so far."""
        ...

    def reckon_with(self, rest_ns: int) -> None:
        """Note how long an event takes downstream: command `Shed`, to an operator that sheds."""
        ...

    @property
    def rows_held(self) -> int:
        """Rows of input that the state holds now."""
        ...

    @property
    def late_dropped(self) -> int:
        """Rows so far that came too late to count in any result of theirs."""
        ...

    def counts(self) -> dict[str, Any]:
        """Return its counts so far, by the names that reports have for them."""
        ...


class PlainOperator:
    """Defaults of an operator that has no counts, and does not shed."""

    def charge(self, took_ns: int, idle_ns: int) -> None:
        """Ignore it."""

    def reckon_with(self, rest_ns: int) -> None:
        """Ignore it."""

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        return {}


class LateOperator(PlainOperator):
    """Defaults of an operator that counts rows as late in `_missed`."""

    _missed: Missed

    @property
    def late_dropped(self) -> int:  # noqa: D102 - see Operator
        return self._missed.dropped


class PlainStateless:
    """Defaults of a machine without row tests or copies, whose first failure ends the job."""

    row_tests: RowTests | None = None
    failed: FailedRows | None = None
    copies: int | None = None


class Stateless(Protocol):
    """The machine of a step that looks at each row alone: filter, select, map."""

    @property
    def row_tests(self) -> RowTests | None:
        """Tests of a filter that a source can make row by row; None without."""
        ...

    @property
    def failed(self) -> FailedRows | None:
        """Rows that a user's function could not use; None where the first ends the job."""
        ...

    @property
    def copies(self) -> int | None:
        """Rows so far beside the first of each row; None if no row gives none.

        Without it rows that give none would hide rows that give several.
        """
        ...

    def apply(self, batch: Batch) -> Batch:
        """Return the rows that remain, in order.

        Raises:
            OperatorError: the user's function raised; names the step, with the traceback
                and a sample of the batch.
        """
        ...

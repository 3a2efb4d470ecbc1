"""What every operator promises. What a gate hands it is `GateRead`, in the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from slackwater.runtime.model import Batch, GateRead
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.ground.late_rows import LateRows
from slackwater.runtime.plan.step import Step


@dataclass(frozen=True)
class Entry:
    """An operator, as it is registered (`runtime/operators/registry.py`).

    Attributes:
        step: what it is to the flow.
        machine: of a step that looks at each row alone, makes its `Stateless`; of others, with
            `most_kept_rows=` (see Limits), its `Operator`.
    """

    step: type[Step]
    machine: Callable[..., Any]


class Operator(Protocol):
    """One machine between a gate and the stages behind it. Deterministic; no I/O, no clock.

    Contract (`slackwater/testing.py` tries it): any cut of the same released order into
    reads gives the same rows in the same order, to the bit; to save and restore it changes
    nothing; `rows_held` is zero after the end. One whose step says `has_time` may go by `now_ns`;
    all others pay no heed to it.

    Attributes:
        STATE: fields that are saved, see `runtime/model/state.py`.
    """

    STATE: Fields

    def process(self, released: GateRead, now_ns: int) -> Batch | None:
        """Take what a gate released; return the rows that this gives, in event-time order.

        One whose step `passes_on` returns each row with the read that has it, or never.

        The stimulus time of each row is the latest of its lineage; for a window, of its
        rows and of the watermark that closed it. Source: [mace] Def. 2, NOTES.
        """
        ...

    def due_ns(self) -> int | None:
        """Return when it has something to do by the clock; None: at no time that is known.

        It is called then, if nothing else has been, with a read without rows. Nothing is due
        after the end. Only one whose step says `has_time` is asked.
        """
        ...

    def promise_ns(self, frontier_ns: int) -> int:
        """Return what may be promised downstream once a read with this frontier is processed."""
        ...

    @property
    def rows_held(self) -> int:
        """Rows of input that the state holds now."""
        ...

    @property
    def late_dropped(self) -> int:
        """Rows so far that came too late to count in any result of theirs."""
        ...

    def take_late(self) -> list[LateRows]:
        """Return the rows since the last call that could not count in full, if that is asked for.

        To be taken behind each `process`: it is in no snapshot.
        """
        ...


class ByEventTime:
    """What an operator says that does not go by the clock."""

    def due_ns(self) -> None:
        """Return None."""


class Stateless(Protocol):
    """A step that looks at each row alone: filter, assign, select, map."""

    def apply(self, batch: Batch) -> Batch:
        """Return the rows that remain, in order.

        Raises:
            OperatorError: the user's function raised; names the step, with the traceback
                and a sample of the batch.
        """
        ...

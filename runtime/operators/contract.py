"""What every operator promises, and what the gate hands it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from runtime.model import Batch


@dataclass(slots=True)
class Released:
    """One read of a gate: rows in order, per port (a merge has one, a join two).

    The order over all ports is (event time, port, writer, order within the writer); each
    port's rows come in that order. How rows were cut into reads must not show in the results.

    Attributes:
        ports: for each port the rows released on time, in order; None for none.
        late: for each port rows that are older than something released before; in order,
            and to be processed before `ports`. None for none (in ready-only mode always, unless
            a writer was idle).
        watermark_ns: no row older than this will be released again, late ones apart.
            END_NS: the end; close everything.
        watermark_stimulus_ns: stimulus time of what moved the watermark here.
        frontier_ns: no row older than this will be released again, not even a late one: all
            writers have promised so, and the gate holds none that is older. At most the watermark;
            never runs back. Only a writer that was marked idle may send one all the same.
    """

    ports: Sequence[Batch | None]
    late: Sequence[Batch | None]
    watermark_ns: int
    watermark_stimulus_ns: int
    frontier_ns: int


class Operator(Protocol):
    """One machine between a gate and the stages behind it. Deterministic; no I/O, no clock.

    Contract (tests/contract/test_operators.py): any cut of the same released order into
    reads gives the same rows in the same order, to the bit; snapshot and restore change
    nothing; `rows_held` is zero after the end.
    """

    def process(self, released: Released) -> Batch | None:
        """Take what a gate released; return the rows that this gives, in event-time order.

        The stimulus time of each row is the latest of its lineage; for a window, of its
        rows and of the watermark that closed it. Source: [mace] Def. 2, NOTES.
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

    def snapshot(self) -> dict[str, Any]:
        """Return all state, as plain values and arrays."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        ...


class Stateless(Protocol):
    """A step that looks at each row alone: filter, assign, select, map."""

    def apply(self, batch: Batch) -> Batch:
        """Return the rows that remain, in order.

        Raises:
            OperatorError: the user's function raised; names the step, with the traceback
                and a sample of the batch.
        """
        ...

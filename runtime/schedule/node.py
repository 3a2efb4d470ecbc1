"""Nodes: what is done in a stage between its queue and its chain.

```
queue, credit, wake-up           ┌─ SourceNode      reads an input, hands over what is due
StageMachine ── work ──▶ Node ───┼─ OperatorNode    a gate, or its reads; then an operator
             ◀─ Handed ──        ├─ SharedGateNode  a gate; then each replica's part of a read
chain, outputs, account          └─ PassNode        rows as they come: a chain, a sink
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.model import Batch, Message, Progress
from slackwater.runtime.model.diverted import DivertedRow
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.ground.late_rows import LateRows
from slackwater.runtime.plan.plan import Channel
from slackwater.runtime.progress import Wakeup

__all__ = ["Handed", "Node"]


class Handed(NamedTuple):
    """Rows that a node hands over in one slice, and their account.

    Attributes:
        rows: rows for the chain; None if none exists.
        progress: progress of the stream with them; None if nothing is new, and nothing leaves.
        used: per input channel the rows of credit that are used up.
        rows_in: rows that were taken in.
        released: rows that went on to the operator. A gate may take rows in with one slice, and
            release them with many others.
        must_leave: whether a message leaves though nothing is new.
        diverted: rows that a source could not use.
        compared: pairs that a join compared.
        passed_over: rows, of those released, that the operator did not look at; None if it looks at
            all.
        has_read: whether the slice read input, or polled for it, and handed nothing over.
        is_input: whether its rows are some of those that came in; else they are results.
        filtered: rows that came in, and that an operator which passes rows on kept to itself.
        late: rows that were too late for the operator.
        failed: rows that a user's code could not use.
        tested: how many of a source's rows the first step of the chain has left out already; None:
            it has not been asked.
        sends: messages for the replicas of a shared gate, which is without a chain.
    """

    rows: Batch | None = None
    progress: Progress | None = None
    used: Sequence[tuple[str, int]] = ()
    rows_in: int = 0
    released: int = 0
    must_leave: bool = False
    diverted: Sequence[DivertedRow] = ()
    compared: int = 0
    passed_over: int | None = None
    has_read: bool = False
    is_input: bool = True
    filtered: int = 0
    late: Sequence[LateRows] = ()
    failed: Sequence[DivertedRow] = ()
    tested: int | None = None
    sends: Sequence[tuple[Channel, Message]] | None = None


class Node(ABC):
    """Common part of the four nodes."""

    STATE = Fields()

    has_more = False
    """Whether the last read was cut short, so that the next has rows whatever comes."""
    awaits_rows = False
    """Whether rows may come after its last read, though it may have promised the end already."""

    @abstractmethod
    def wakeup(self, rank_ns: int | None) -> Wakeup | None:
        """Return the next work; None if it waits for something.

        Args:
            rank_ns: the earliest stimulus that is queued; None if nothing is.
        """

    @abstractmethod
    def work(self, now_ns: int, *, max_rows: int) -> Handed:
        """Work off about `max_rows` rows."""

    @abstractmethod
    def count(self, report: StageReport, now_ns: int) -> None:
        """Fill in a report as of now."""

    @abstractmethod
    def waited_ns(self, now_ns: int) -> int:
        """Return how long its next rows have waited for the stage, not for a promise."""

    def charge(self, took_ns: int, idle_ns: int) -> None:
        """Tell what a slice took, and how long the slot has been idle so far."""
        del took_ns, idle_ns

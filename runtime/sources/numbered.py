"""Blocks of a source whose rows are put in order by their numbers.

A wait ends by the arrivals: when a row is read that arrived later. So what leaves is known as soon
as rows are read, and a paced source hands it over when its time has come. Where there are neither
arrivals nor a pace, a row arrives when it is read, and a wait ends by the clock.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model import END_NS, START_NS, Batch, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.newest import running_max
from slackwater.runtime.order.sequence import BySequence
from slackwater.runtime.order.sequence_order import NumberedRows, SequenceOrder
from slackwater.runtime.order.steps import Steps
from slackwater.runtime.sources.early import Rows
from slackwater.runtime.sources.judged_block import JudgedBlock
from slackwater.runtime.sources.pacing import Pace
from slackwater.runtime.sources.spec import SourceSpec


class NumberedBlocks:
    """The rows of one source, in the order of their numbers.

    Args:
        source: its name, for errors.
        policy: policy for missing numbers.
        column: the column of the numbers.
        spec: all settings of the source.
    """

    STATE = Fields("_order", "_clock_ns", "_newest_ns", "_nothing")

    def __init__(self, source: str, policy: BySequence, column: str, spec: SourceSpec) -> None:
        self._source, self._policy, self._column = source, policy, column
        self._by_clock = spec.goes_by_clock
        self._order = SequenceOrder(policy, has_writers=spec.writer is not None)
        self._clock_ns = START_NS  # the newest arrival
        self._newest_ns = START_NS
        self._nothing: Batch | None = None  # a batch of no rows, with all columns

    def block(
        self,
        rows: Rows,
        carried: Batch,
        before_ns: Int64Array,
        *,
        pace: Pace | None,
        start_ns: int,
        now_ns: int,
    ) -> JudgedBlock:
        """Return what leaves as these rows are read; they stay where they wait.

        Args:
            rows: rows, at least one.
            carried: the same rows as they travel, but for their stimulus times.
            before_ns: shape (rows,), the newest event time of its writer before each.
            pace: says when rows are due; None if all are at once.
            start_ns: wall clock at which the first row of a paced source is due.
            now_ns: time by the clock.

        Raises:
            SchemaError: a number that none can be.
        """
        number = self._numbers(rows)
        if self._by_clock:
            clock_ns = np.full(len(rows), max(now_ns, self._clock_ns), dtype=np.int64)
        else:
            clock_ns = running_max(rows.arrival_ns, self._clock_ns)
        if pace is None:  # stamped when they are handed over, or now, if they wait
            stimulus_ns = np.full(len(rows), now_ns, dtype=np.int64)
        else:
            stimulus_ns = pace.due_ns(rows.arrival_ns, start_ns=start_ns)
        self._clock_ns = int(clock_ns[-1])
        batch = carried.with_(event_time_ns=rows.event_time_ns, stimulus_time_ns=stimulus_ns)
        self._nothing = batch.slice(0, 0)
        numbered = NumberedRows(batch, rows.writers, number, clock_ns, before_ns)
        steps = self._order.extend(numbered, until_ns=self._clock_ns)
        return self._of_steps(steps, batch, pace, start_ns)

    def waited(self, now_ns: int) -> JudgedBlock | None:
        """Return what leaves by the clock, nothing having come; None if nothing does."""
        due_ns = self.wait_ends_ns
        if due_ns is None or due_ns > now_ns or self._nothing is None:
            return None
        self._clock_ns = max(self._clock_ns, now_ns)
        steps = self._order.extend(self._nothing, until_ns=self._clock_ns)
        return self._of_steps(steps, self._nothing, None, 0) if len(steps) else None

    def rest(self, pace: Pace | None, *, start_ns: int) -> JudgedBlock | None:
        """Return what was held, nothing following; None if nothing was."""
        if not self._order.rows_held or self._nothing is None:
            return None
        steps = self._order.extend(self._nothing, until_ns=self._clock_ns, is_end=True)
        return self._of_steps(steps, self._nothing, pace, start_ns)

    @property
    def wait_ends_ns(self) -> int | None:
        """Time by the clock when something leaves though nothing comes; None if nothing will."""
        due_ns = self._order.due_ns() if self._by_clock else None
        return None if due_ns is None else due_ns + 1

    def _of_steps(self, steps: Steps, rows: Batch, pace: Pace | None, start_ns: int) -> JudgedBlock:
        newest_ns = np.append(self._newest_ns, running_max(rows.event_time_ns, self._newest_ns))
        self._newest_ns = int(newest_ns[-1])
        due_ns = None if pace is None else pace.at_ns(steps.time_ns, start_ns=start_ns)
        return JudgedBlock(
            steps.batch,
            len(steps),
            None if due_ns is None else due_ns.data,
            newest_ns[steps.row_of + 1].data,
            steps.promised_ns.data,
            None,
            None,
            "",
            steps.leaves,
            np.append(0, steps.row_of + 1),
            steps.counts,
            None if rows.arrivals is None else steps.time_ns,
        )

    def _numbers(self, rows: Rows) -> Int64Array:
        column = np.asarray(rows.columns[self._column])
        most = self._policy.numbers if self._policy.wraps is not None else END_NS
        wrong = (column < 0) | (column >= most)
        if wrong.any():
            at = int(wrong.argmax())
            rule, more = "is 0 or more", ""
            if self._policy.wraps is not None:
                rule += f" and, with wraps={self._policy.wraps}, below {most}"
            elif column[at] >= most:
                rule += f" and below {most}"
            if column[at] < 0:
                more = " (if they are of a counter that goes on below 0, such as one of 32 bits"
                more += ": add 2**32 to them, and set wraps=32)"
            raise SchemaError(
                f"source {self._source!r}: {self._column!r} is {column[at]} in row {rows.row[at]} "
                f"(counted from 0), and a number in a sequence {rule}; drop or mend such rows "
                f"before reading{more}"
            )
        return column.astype(np.int64, copy=False)

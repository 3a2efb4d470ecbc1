"""State of a source: rows read, held and handed over, promises; a snapshot.

What it does with that is in `machine.py`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from slackwater.runtime.expressions.row_tests import RowTests, RowTestsOver
from slackwater.runtime.model import NO_PROGRESS, START_NS, Batch, Progress
from slackwater.runtime.model.state import Fields, restore, save
from slackwater.runtime.sources.arrivals import ArrivalTeller
from slackwater.runtime.sources.blocks import BlockReader
from slackwater.runtime.sources.few_rows import FewRows
from slackwater.runtime.sources.judged_block import JudgedBlock
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["SourceState"]


class SourceState:
    """The state of a `SourceMachine`, which says what it is.

    Of the input the number of rows read is saved; and rows that were read and not handed over, with
    all that was decided of them. After a restore the next `read` or `take` that needs more rows
    opens the input and passes over those that were read before. They must be the same; how they are
    cut into blocks does not show.
    """

    STATE = Fields(
        "taken",
        "_rows_out",
        "late_dropped",
        "late",
        "duplicates",
        "given_up",
        "renumbered",
        "_start_ns",
        "progress",
        "_is_exhausted",
        "diverted",
        "_consumed",
        "_last_due_ns",
        "_heard_ns",
        "_reading",
        "_block_left",
        "_order",
        "_ready",
        "_arrived_ns",
        "_teller",
    )

    def __init__(
        self,
        name: str,
        spec: SourceSpec,
        schema: pa.Schema,
        *,
        writer_id: int,
        start_ns: int,
        needed: frozenset[str] | None = None,
        teller: ArrivalTeller | None = None,
        beginning_ns: int | None = None,
    ) -> None:
        self.name = name
        self.taken = 0
        """Rows taken out of blocks so far; early ones are in none."""
        self.late_dropped = self.late = 0
        self.duplicates = self.given_up = self.renumbered = 0
        self.progress = NO_PROGRESS
        self.row_tests: RowTests | None = None
        """Tests of the filter after it: few rows that fail are only counted, in `left_out`."""
        self.left_out = 0
        """Number of the last `take`'s rows that its message omits."""
        self.untaken = self.diverted = 0
        """Rows that were read, but not taken before the source was closed."""
        self.is_tested = False
        """Whether all rows of its message have passed the tests, so that no test need run again."""
        self._spec = spec
        self._start_ns = start_ns
        self._order = spec.reorder.begin()
        self._passes = teller is None and getattr(self._order, "holds_nothing", False)
        self._waits_by_clock = spec.goes_by_clock
        self._blocks = BlockReader(
            name,
            spec,
            schema,
            order=self._order,
            rank=writer_id,
            needed=needed,
            teller=teller,
            beginning_ns=beginning_ns,
        )
        self._teller = teller
        self._arrived_ns = START_NS  # the newest arrival of the rows consumed
        self._block: JudgedBlock | FewRows | None = None
        self._tests: RowTestsOver | None = None  # of the filter after it, over that block
        self._plain: JudgedBlock | None = None  # the same, if its rows leave one by one when due
        self._position = 0  # rows of the block consumed
        self._is_exhausted = False  # the input has ended, and all its rows were in blocks
        self._ready: Batch | None = None  # released, not handed over: more than one take's worth
        self._rows_out = 0
        self._consumed = Progress(START_NS, start_ns)  # by the rows consumed
        self._last_due_ns: int | None = None
        self._heard_ns = start_ns  # wall clock of the last rows, if it releases rows in silence
        self._leaves_in_silence = spec.goes_on_in_silence and spec.reorder.sorts
        self._is_closed = False
        self._closed_before_ns: int | None = None  # when the next row would have been due

    @property
    def is_ended(self) -> bool:
        """Whether the message with the end has been handed over."""
        return self.progress.is_end

    @property
    def newest_ns(self) -> int:
        """The newest event time of the rows consumed, which are not held as early."""
        return self._consumed.newest_ns

    @property
    def rows_in(self) -> int:
        """Rows taken from the input so far."""
        return self.taken + self.early_held + self.bad_times + self.unreadable + self.diverted

    @property
    def bad_times(self) -> int:
        """Rows left out for an impossible time; they may be read ahead."""
        return self._blocks.bad_times

    @property
    def unreadable(self) -> int:
        """Rows that the input could not read, and that were omitted."""
        return self._blocks.unreadable

    @property
    def first_bad(self) -> list[str]:
        """First rows that could not be used, with the reason."""
        return self._blocks.first_bad

    @property
    def early_held(self) -> int:
        """Rows read that have not happened yet by their arrivals; they may be read ahead."""
        return 0 if self._blocks.early is None else self._blocks.early.rows

    @property
    def early(self) -> int:
        """Rows that were held back so, ever."""
        return 0 if self._blocks.early is None else self._blocks.early.counted

    @property
    def clock_told(self) -> dict[str, int]:
        """Counts of its writers' clocks for a report; empty if they are trusted."""
        return self._blocks.clock_told()

    @property
    def held(self) -> int:
        """Rows held as early, for their order, or until they are handed over."""
        return self.taken + self.early_held - self.late_dropped - self.duplicates - self._rows_out

    @property
    def rows_out(self) -> int:
        """Rows handed over."""
        return self._rows_out

    @property
    def holder(self) -> str | None:
        """Writer whose silence is waited out; None if it is not known."""
        return None if self.is_ended else self._blocks.holder()

    @property
    def _reading(self) -> Any:
        """State of the block reader, at the row handed over if possible."""
        at_row = self._reading_at_row
        return save(self._blocks) if at_row is None else at_row

    @_reading.setter
    def _reading(self, state: Any) -> None:
        restore(self._blocks, state)

    @property
    def _reading_at_row(self) -> Any:
        """State of the block reader at that row; None: the rest is saved."""
        block = self._block
        if not (self._passes and isinstance(block, JudgedBlock)) or self._position >= block.rows:
            return None
        return self._blocks.at_row(block, self._position)

    @property
    def _block_left(self) -> dict[str, Any] | None:
        """Rest of a block that cannot be read again: rows, and the decisions on them."""
        block = self._block
        if block is None or self._position >= block.rows or self._reading_at_row is not None:
            return None
        return block.rest(self._position)

    @_block_left.setter
    def _block_left(self, rest: dict[str, Any] | None) -> None:
        self._begin(None if rest is None else JudgedBlock.of_rest(rest))

    def _begin(self, block: JudgedBlock | FewRows | None) -> None:
        """Go on with this block."""
        self._block = block
        self._plain = self._tests = None
        if isinstance(block, JudgedBlock) and block.is_plain and self._passes:
            self._plain = block
        if self._plain is not None and self.row_tests is not None:
            self._tests = self.row_tests.over(self._plain.batch)

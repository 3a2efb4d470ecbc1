"""Read of a gate, as an operator takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slackwater.runtime.model.batch import Batch
from slackwater.runtime.model.message import Progress
from slackwater.runtime.model.times import END_NS, START_NS


@dataclass(slots=True)
class GateRead:
    """Read of a gate: rows in order, per port.

    The order over all ports is (event time, port, writer, order within the writer); each
    port's rows come in that order. How rows were cut into reads must not show in the results.

    Attributes:
        ports: rows of each port released on time, in order; None if there are none.
        late: rows of each port that are older than something released before; in order, and to be
            processed before `ports`. None if there are none (in ready-only mode always, unless a
            writer was idle).
        watermark_ns: no row older than this will be released again, late ones apart.
            END_NS: the end; close everything.
        progress: progress of the gate. Its promise is the frontier: no row older than this will be
            released again, not even a late one; all writers have promised so, and the gate holds
            none that is older. At most the watermark; never runs back. Only a writer that was
            marked idle may send one all the same. Its stimulus is that of what moved the watermark
            here. Every row that arrived before its `arrived` has been released.
    """

    ports: Sequence[Batch | None]
    late: Sequence[Batch | None]
    watermark_ns: int
    progress: Progress

    @property
    def reached_ns(self) -> int:
        """Event time that its inputs have reached, at the end too: the watermark before it."""
        return self.progress.newest_ns if self.watermark_ns == END_NS else self.watermark_ns

    @property
    def batches(self) -> list[Batch]:
        """Batches that it released, late rows among them; none is empty."""
        return [batch for batch in (*self.ports, *self.late) if batch is not None and len(batch)]

    @property
    def rows(self) -> int:
        """Number of rows that it released, late ones among them."""
        rows = 0
        for batches in (self.ports, self.late):
            for batch in batches:
                if batch is not None:
                    rows += len(batch.event_time_ns)
        return rows

    @property
    def last_stimulus_ns(self) -> int:
        """Stimulus of the last row that it released; START_NS without one."""
        return max([batch.stimulus_time_ns.item(-1) for batch in self.batches], default=START_NS)

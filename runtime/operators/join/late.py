"""Late rows of a join: they may have missed a partner."""

from __future__ import annotations

from slackwater.runtime.model import END_NS, START_NS, Batch
from slackwater.runtime.operators.ground.late_rows import LateRows


def partly_late(
    batch: Batch, port: int, gone_ns: int, *, dropped_ns: int, within_ns: int
) -> list[LateRows]:
    """Return the rows of a join's input that may have missed a partner.

    Args:
        batch: the rows that came.
        port: the port of the input.
        gone_ns: rows older than this have been dropped.
        dropped_ns: rows older than this count nowhere; at most `gone_ns`. A row between the two
            may find partners at another replica, which has dropped fewer.
        within_ns: how far apart partners may be.
    """
    if gone_ns == START_NS:
        return []
    reach_ns = min(gone_ns, END_NS - within_ns) + within_ns  # partners of older rows have gone
    missed = (batch.event_time_ns < reach_ns).nonzero()[0]
    if not len(missed):
        return []
    rows = batch.take(missed)
    times = rows.event_time_ns
    return [LateRows(port, rows, reach_ns - times, times < dropped_ns)]

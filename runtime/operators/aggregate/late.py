"""Late rows of an aggregate, and revisions of its results."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Batch, BoolArray, Int64Array
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.window import Windows
from slackwater.runtime.operators.ground.late_rows import LateRows


def missed_windows(
    batch: Batch, panes: Int64Array, windows: Windows, last_closed: int, *, by_arrivals: bool
) -> LateRows:
    """Return the rows of an aggregate's input that missed a window.

    A row is late by the distance from its event time to the end of the last window that is done.

    Args:
        batch: the rows that came.
        panes: shape (rows,): the pane of each row.
        windows: the windows of the aggregate.
        last_closed: the last window that is done.
        by_arrivals: whether windows close by them. Then a row is found late as it arrives: no cut
            of the rows into reads changes that moment.
    """
    missed = np.flatnonzero(panes < windows.first_whole_pane(last_closed))
    rows = batch.take(missed)
    end_ns = END_NS if last_closed == END_NS else windows.end_ns(last_closed)
    is_dropped = panes.take(missed) < windows.first_open_pane(last_closed)
    found_ns = START_NS
    if by_arrivals and last_closed != END_NS:  # the last moment in the first window that is open
        found_ns = min(windows.end_ns(last_closed + 1), END_NS) - 1
    return LateRows(0, rows, end_ns - rows.event_time_ns, is_dropped, found_ns)


class Revisions:
    """Revisions counts how often the result of a window and key has left again.

    Only corrected results are counted, until their window is final: {window: {code: revision}}.
    """

    STATE = Fields(Field("_known", by=OWNER, each=True))

    def __init__(self) -> None:
        self._known: dict[int, dict[int, int]] = {}

    def next(self, windows: Int64Array, codes: Int64Array, *, is_first: BoolArray) -> Int64Array:
        """Count results that leave again, and return the revision of each.

        Args:
            windows: shape (results,), each by its k.
            codes: shape (results,), of the keys.
            is_first: shape (results,): the cell had no rows before, so no result has left yet.
        """
        known, revisions = self._known, []
        for window, code, first in zip(
            windows.tolist(), codes.tolist(), is_first.tolist(), strict=True
        ):
            of_window = known.setdefault(window, {})
            before = of_window.get(code, -1 if first else 0)
            of_window[code] = before + 1
            revisions.append(before + 1)
        return np.array(revisions, dtype=np.int64)

    def forget(self, last_final: int) -> None:
        """Forget windows that are final."""
        for window in [window for window in self._known if window <= last_final]:
            del self._known[window]

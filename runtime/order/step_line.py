"""Step line: rows that were read, and waits that ended between them, in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slackwater.runtime.model import Int64Array


class StepLine:
    """Line of time of a piece: its rows and the waits that ended, as steps.

    A wait that ended comes after all rows up to its end.

    Args:
        clock_ns: shape (rows,), the newest arrival up to each row.
        moments: (when a wait for a number ended, its writer).
        silences: (when a writer was silent for too long, which writer); None if the source has one
            writer.

    Attributes:
        time_ns: shape (steps,).
        row_of: shape (steps,), the last row read; −1 before the first.
        of_row: shape (rows,), the step of each row.
        of_silence: shape (silences,), the step of each.
    """

    def __init__(
        self,
        clock_ns: Int64Array,
        moments: Sequence[tuple[int, int]],
        silences: tuple[Int64Array, Int64Array] | None,
    ) -> None:
        rows, ended = len(clock_ns), np.array(moments, dtype=np.int64).reshape(-1, 2)
        ended_ns, writers, silent = ended[:, 0], ended[:, 1], 0
        if silences is not None:
            silent = len(silences[0])
            ended_ns = np.append(ended_ns, silences[0])
            writers = np.append(writers, silences[1])
        if not len(ended_ns):
            self.time_ns, self.row_of, self.of_row = clock_ns, np.arange(rows), np.arange(rows)
            self._of_moment = self.of_silence = np.empty(0, dtype=np.int64)
            return
        is_silence = np.repeat([0, 1], (len(moments), silent))
        order = np.lexsort((writers, is_silence, ended_ns))  # stable: a writer's keep their order
        ended_ns = ended_ns[order]
        of_moment = clock_ns.searchsorted(ended_ns, side="right") + np.arange(len(order))
        self.of_row = np.arange(rows) + ended_ns.searchsorted(clock_ns, side="left")
        self.time_ns = np.empty(rows + len(order), dtype=np.int64)
        self.time_ns[self.of_row] = clock_ns
        self.time_ns[of_moment] = ended_ns + 1
        read = np.zeros(rows + len(order), dtype=np.int64)
        read[self.of_row] = 1
        self.row_of = np.cumsum(read) - 1
        self._of_moment = np.empty(len(order), dtype=np.int64)
        self._of_moment[order] = of_moment
        self.of_silence = self._of_moment[len(moments) :]

    def steps(self, places: Int64Array) -> Int64Array:
        """Return the steps of places as in `Fates`: rows, or, below zero, moments."""
        steps = np.empty(len(places), dtype=np.int64)
        is_row = places >= 0
        steps[is_row] = self.of_row[places[is_row]]
        steps[~is_row] = self._of_moment[-1 - places[~is_row]]
        return steps

"""Sort buffer: rows held until no older row can come, for a bounded disorder."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import END_NS, Batch, concat_batches, stable_order
from slackwater.runtime.model.state import Fields


class SortBuffer:
    """Buffer that releases rows in order of event time, ties in order of arrival.

    The rows lie in sorted runs, oldest arrivals first. When a run is added, the run before it is at
    least twice as long. So runs are few, and a row is copied a logarithmic number of times, however
    small the pieces of the input.
    """

    STATE = Fields("_runs")

    def __init__(self) -> None:
        self._runs: list[Batch] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    @property
    def first_ns(self) -> int | None:
        """Oldest event time held; None if no row is held."""
        return min((int(run.event_time_ns[0]) for run in self._runs), default=None)

    def add(self, batch: Batch) -> None:
        """Hold these rows, which arrived after all others."""
        if len(batch) == 0:
            return
        # Concatenated first, so that runs are sorted once and ties stay in the order of arrival.
        rows, parts = len(batch), [batch]
        while self._runs and len(self._runs[-1]) < 2 * rows:
            parts.append(self._runs.pop())
            rows += len(parts[-1])
        self._runs.append(_sorted(concat_batches(parts[::-1])))

    def release(self, until_ns: int = END_NS) -> Batch | None:
        """Return the rows with event_time_ns <= until_ns, in order; None if there are none."""
        released, held = [], []
        for run in self._runs:
            cut = int(run.event_time_ns.searchsorted(until_ns, side="right"))
            if cut:
                released.append(run.slice(0, cut))
            if cut < len(run):
                held.append(run.slice(cut, len(run)))
        self._runs = held
        return _sorted(concat_batches(released)) if released else None


def _sorted(batch: Batch) -> Batch:
    times_ns = batch.event_time_ns
    if not np.count_nonzero(times_ns[1:] < times_ns[:-1]):
        return batch
    return batch.take(stable_order(times_ns))

"""Windows close in time: rows come by arrival, and a policy closes windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from slackwater.runtime.closing.policy import ClosingCounts
from slackwater.runtime.model import (
    END_NS,
    PLACE_BITS,
    START_NS,
    Batch,
    GateRead,
    Int64Array,
    concat_batches,
)
from slackwater.runtime.model.ranges import starts_of_runs
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.segments import ByWatermark, Closer, Segment, Wait
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.ground.keys import KeyIndex


def closer_of(step: AggregateStep, keys: KeyIndex) -> Closer:
    """Return the closer of a step's windows; `keys` are the aggregate's."""
    return ByWatermark() if step.close is None else ByPolicy(step, keys)


class ByPolicy:
    """ByPolicy sorts rows by their arrivals, and asks a policy when windows close.

    Ties are broken by the source's number, then by the row's place in its input: so the way of a
    row to this operator does not show. By the clock, where sources tell no arrivals, a row's
    arrival is its stimulus time, and no row arrives before the time that has passed.
    """

    STATE = Fields(
        "run",
        "_types",
        Field("_held", of=OWNER, each=True),
        "_has_begun",
        "waited_ns",
        "_is_held",
        "_passed_ns",
        "_closed_ns",
        "_final_ns",
        "_left_ns",
        "_since_ns",
        "_ends",
        "_chances",
    )

    def __init__(self, step: AggregateStep, keys: KeyIndex) -> None:
        self._keys, self._key_columns = keys, step.keys
        close = step.close
        assert close is not None, "else windows close by the watermark"
        self._close, self._corrects = close, step.late == "correct"
        self._policy = close.policy.part(step.replica.of if step.replica else 1)
        self.run = self._policy.begin(step.window)
        self._types = KeyIndex(1)
        self._held: list[Batch] = []  # rows whose turn has not come
        self.rows_held = 0
        self._passed_ns = START_NS  # all rows that arrived before have been worked on
        self._closed_ns = START_NS
        self.waited_ns = 0
        self._has_begun = False  # a policy hears of time once there are windows
        # The first arrival of the source that was heard last; END_NS: not yet.
        self._since_ns = END_NS
        self._is_held = True
        self.run.hold(True)
        self._final_ns = START_NS
        self._ends: list[Int64Array] = []  # ends of the windows that closed lately
        self._chances: list[npt.NDArray[np.float64]] = []
        self._left_ns = END_NS  # later ends: windows left to the end of the input

    def segments(self, released: GateRead, now_ns: int) -> Iterator[Segment]:  # noqa: D102 - see Closer
        is_end = released.watermark_ns == END_NS
        arrived_ns, stimulus_ns = self._told(released, now_ns)
        self._hear_sources(released)
        self.waited_ns = 0
        self._forget_final()
        rows = self._due_rows(released.batches, END_NS if is_end else arrived_ns)
        last: Sequence[Batch] = ()
        if rows is not None:
            arrival_ns = self._arrival_ns(rows)
            closed_ns = self._observed(rows, arrival_ns)
            self._note_closings()
            for start, stop in _runs(closed_ns):
                until_ns = closed_ns.item(start)
                if until_ns > self._closed_ns:
                    self._closed_ns = until_ns
                    row_ns = rows.stimulus_time_ns.item(start)
                    wait = self._wait(arrival_ns.item(start))
                    yield Segment(last, until_ns, row_ns, self._final_ns, wait)
                    last = ()
                last = (*last, rows.slice(start, stop))
        if arrived_ns > self._passed_ns and self._closed_ns < END_NS:
            self._passed_ns = arrived_ns
            if arrived_ns >= self._since_ns:
                self._release()
            if self._has_begun:
                self._closed_ns = max(self._closed_ns, self.run.pass_time(arrived_ns))
        if is_end:
            self.run.finish()
            self._left_ns = min(self._left_ns, self._closed_ns)
            self._closed_ns = self._final_ns = END_NS
        else:
            oldest = [int(batch.event_time_ns.min()) for batch in self._held]
            self._final_ns = max(self._final_ns, min([released.progress.promise_ns, *oldest]))
        self._note_closings()
        wait = None if is_end else self._wait(arrived_ns)
        yield Segment(last, self._closed_ns, stimulus_ns, self._final_ns, wait)

    def _observed(self, rows: Batch, arrival_ns: Int64Array) -> Int64Array:
        if self._closed_ns == END_NS:  # no window is open
            return np.full(len(rows), END_NS, dtype=np.int64)
        types, closed_ns = self._types_of(rows), []
        held = int(arrival_ns.searchsorted(self._since_ns)) if self._is_held else 0
        for part in (slice(0, held), slice(held, len(rows))):
            if part.start == part.stop:
                continue
            if part.start == held:
                self._release()
            self._has_begun = True
            times = rows.event_time_ns[part], arrival_ns[part]
            closed_ns.append(self.run.observe(types[part], *times))
        return np.concatenate(closed_ns)

    def _hear_sources(self, released: GateRead) -> None:
        """Find out since when each source of the plan has been heard, or is idle.

        No arrivals count before that, and no rows are worked on. By the clock, the source's promise
        says it.
        """
        if self._since_ns < END_NS:
            return
        if not self._close.by_clock:
            if released.progress.arrived is not None:
                self._since_ns = released.progress.arrived.since_ns
        elif not self._close.awaits or released.progress.promise_ns > START_NS:
            self._since_ns = self._passed_ns

    def _release(self) -> None:
        """Allow windows to close from the moment when the last source was heard."""
        if not self._is_held:
            return
        if self._has_begun:
            self.run.pass_time(self._since_ns)
        self._is_held = False
        self.run.hold(False)

    def _wait(self, arrival_ns: int) -> Wait | None:
        speed = self._close.speed
        return None if speed is None else Wait(arrival_ns, speed)

    def _told(self, released: GateRead, now_ns: int) -> tuple[int, int]:
        """Return how far arrivals have come, and when that was known."""
        if self._close.by_clock:
            return max(now_ns, self._passed_ns), now_ns
        if (arrived := released.progress.arrived) is None:
            return self._passed_ns, released.progress.stimulus_ns
        return max(arrived.ns, self._passed_ns), arrived.stimulus_ns

    def _due_rows(self, came: list[Batch], told_ns: int) -> Batch | None:
        """Return the rows whose turn it is, by arrival, and hold the others; None: none."""
        due: list[Batch] = []
        held, self._held = [*self._held, *came], []
        for place, batch in enumerate(held):
            own_ns = self._own_arrivals(batch)
            if self._close.by_clock or int(own_ns.max()) < told_ns:
                due.append(batch.with_(codes=None))
            elif int(own_ns.min()) < told_ns:
                is_due = own_ns < told_ns
                due.append(batch.keep(is_due).with_(codes=None))
                self._held.append(self._coded(batch.keep(~is_due)))
            else:  # rows that have just come belong to their batch, which may change
                is_ours = place < len(held) - len(came)
                rows = batch if is_ours else self._coded(batch.take(np.arange(len(batch))))
                self._held.append(rows)
        self.rows_held = sum(map(len, self._held))
        if not due:
            return None
        rows = concat_batches(due)
        return rows.take(self._order(rows))

    def _coded(self, rows: Batch) -> Batch:
        """Return rows with the codes of their keys."""
        if rows.codes is not None:
            return rows
        columns = [rows.columns[name] for name in self._key_columns]
        return rows.with_(codes=self._keys.codes(columns, len(rows)))

    def codes(self) -> Sequence[Int64Array]:  # noqa: D102 - see Closer
        return [rows.codes for rows in self._held if rows.codes is not None]

    def _own_arrivals(self, rows: Batch) -> Int64Array:
        if self._close.by_clock or rows.arrivals is None:
            return rows.stimulus_time_ns
        own: Int64Array = rows.arrivals[:, 0]
        return own

    def _arrival_ns(self, rows: Batch) -> Int64Array:
        return np.maximum(self._own_arrivals(rows), self._passed_ns)

    def _order(self, rows: Batch) -> Int64Array:
        arrival_ns = self._arrival_ns(rows)
        if rows.arrivals is None:
            return arrival_ns.argsort(kind="stable")
        return np.lexsort((rows.arrivals[:, 1], arrival_ns))

    def _types_of(self, rows: Batch) -> Int64Array:
        if self._close.type is not None:
            return self._types.codes([rows.columns[self._close.type]], len(rows))
        if rows.arrivals is None:
            return np.zeros(len(rows), dtype=np.int64)
        return self._types.codes([rows.arrivals[:, 1] >> PLACE_BITS], len(rows))

    def _forget_final(self) -> None:
        """Forget the closings of windows: all, or those of windows that are final."""
        if not self._corrects:
            self._ends, self._chances = [], []
        elif self._ends:
            ends_ns, chances = np.concatenate(self._ends), np.concatenate(self._chances)
            may_change = ends_ns > self._final_ns
            self._ends, self._chances = [ends_ns[may_change]], [chances[may_change]]

    def _note_closings(self) -> None:
        closed = self.run.closings()
        if len(closed.end_ns):
            self._ends.append(closed.end_ns)
            self._chances.append(closed.chance_missing)
            if (speed := self._close.speed) is not None:
                waited_ns = int((closed.closed_at_ns - closed.end_ns).max() / speed)
                self.waited_ns = max(self.waited_ns, waited_ns)

    def sure_ns(self, frontier_ns: int) -> int:  # noqa: D102 - see Closer
        return min(self._closed_ns, self._final_ns) if self._corrects else self._closed_ns

    def due_ns(self) -> int | None:  # noqa: D102 - see Closer
        due_ns = self.run.next_ns()
        return None if due_ns is None else max(due_ns, self._passed_ns + 1)

    def chances(self, ends_ns: Int64Array) -> npt.NDArray[np.float64]:  # noqa: D102 - see Closer
        known = np.concatenate([*self._ends, np.empty(0, np.int64)])
        chances = np.concatenate([*self._chances, np.empty(0)])
        order = known.argsort(kind="stable")
        at = known.searchsorted(ends_ns, sorter=order)
        chances_by_end = np.full(len(ends_ns), np.nan)
        there = np.flatnonzero(at < len(known))
        places = order.take(at.take(there))
        is_same = known.take(places) == ends_ns.take(there)
        chances_by_end[there[is_same]] = chances.take(places[is_same])
        chances_by_end[ends_ns > self._left_ns] = 0.0
        return chances_by_end

    def counts(self) -> ClosingCounts:  # noqa: D102 - see Closer
        return self.run.counts()

    def derive(self) -> None:  # noqa: D102
        self.rows_held = sum(map(len, self._held))


def _runs(closed_ns: Int64Array) -> Iterator[tuple[int, int]]:
    starts = starts_of_runs(closed_ns).tolist()
    yield from zip(starts, [*starts[1:], len(closed_ns)], strict=True)

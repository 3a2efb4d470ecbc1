"""Rows to the objects of their keys, in the order of event time, and calls in time between them.

```
rows   a1  b1  a4 │          watermark 4: a4 waits, for more may come of that time
calls  a: on_rows(1)  b: on_rows(1)  …  a: on_time(3)     a has set due_ns = 3
```

An object has all rows of its key and event time at once, then what falls due at that time. So how
rows were cut into reads cannot show.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Batch, Columns, GateRead, concat_batches
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.ground.contract import ByEventTime
from slackwater.runtime.operators.ground.fit import fitted
from slackwater.runtime.operators.ground.late_rows import LateRows
from slackwater.runtime.operators.ground.user_code import rows_of
from slackwater.runtime.operators.process.objects import Keyed, KeyedRows, Objects
from slackwater.runtime.operators.process.step import ProcessStep


class ProcessMachine(ByEventTime):
    """The machine of a `ProcessStep`.

    Attributes:
        late_dropped: rows so far that came when the time they happened at was done with.
        timers: how often an object was called in time.
    """

    STATE = Fields("_objects", "_waiting", "_done_ns", "_tidied", "late_dropped", "timers")

    def __init__(self, step: ProcessStep, *, most_kept_rows: int) -> None:
        del most_kept_rows  # nobody knows which of the user's objects could go
        self._step = step
        self._objects = Objects(step)
        self._waiting: list[Batch] = []  # rows of a time of which more may come
        self._due: list[tuple[int, int, Any]] = []  # heap: (when, number of the object, key)
        self._done_ns = START_NS  # all that happened before this has gone to its objects
        self._tidied = 0
        self._late: list[LateRows] = []
        self.late_dropped = self.timers = 0

    def process(self, released: GateRead, now_ns: int) -> Batch | None:
        """Take rows, late ones first; return what the objects make of those whose time is done."""
        del now_ns
        for batch in (*released.late, *released.ports):
            if batch is not None and len(batch):
                self._wait(batch)
        until_ns = released.watermark_ns
        if until_ns <= self._done_ns:
            return None
        made = self._work(self._ready(until_ns), until_ns, released.watermark_stimulus_ns)
        self._done_ns = until_ns
        objects = self._objects
        if until_ns == END_NS or len(objects.by_key) > 2 * self._tidied + 1024:
            objects.forget_before(until_ns)
            self._tidied = len(objects.by_key)
        return made

    def promise_ns(self, frontier_ns: int) -> int:
        """Return the frontier: what follows is at least as new as a row, or a time, to come."""
        return frontier_ns

    @property
    def rows_held(self) -> int:
        """Rows whose time is not done, and one for each object."""
        return sum(len(batch) for batch in self._waiting) + len(self._objects.by_key)

    def take_late(self) -> list[LateRows]:
        """Return the rows since the last call that came too late."""
        late, self._late = self._late, []
        return late

    # -- rows in, rows out --------------------------------------------------------------

    def _wait(self, batch: Batch) -> None:
        is_late = batch.event_time_ns < self._done_ns
        if is_late.any():
            late = batch.keep(is_late)
            self.late_dropped += len(late)
            if self._step.keeps_late:
                late_by_ns = self._done_ns - late.event_time_ns
                dropped = np.ones(len(late), dtype=np.bool_)
                self._late.append(LateRows(0, late, late_by_ns, dropped))
        if not is_late.all():
            self._waiting.append(batch.keep(~is_late))

    def _ready(self, until_ns: int) -> Batch | None:
        """Return the rows that happened before that, in order; the others go on waiting."""
        if not self._waiting:
            return None
        rows = concat_batches(self._waiting)
        rows = rows.take(rows.event_time_ns.argsort(kind="stable"))
        ready = int(rows.event_time_ns.searchsorted(until_ns))
        if until_ns == END_NS:
            ready = len(rows)
        rest = rows.take(np.arange(ready, len(rows)))
        self._waiting = [rest] if len(rest) else []
        return rows.slice(0, ready) if ready else None

    def _work(self, ready: Batch | None, until_ns: int, stimulus_ns: int) -> Batch | None:
        made = _Made(stimulus_ns)
        times = [] if ready is None else ready.event_time_ns.tolist()
        rows = [] if ready is None else rows_of(ready)
        start = 0
        while start < len(times):
            stop, time_ns = start + 1, times[start]
            while stop < len(times) and times[stop] == time_ns:
                stop += 1
            assert ready is not None
            self._call_in_time(time_ns, made)
            self._hand_out(rows[start:stop], ready.slice(start, stop), time_ns, made)
            start = stop
        self._call_in_time(until_ns, made)
        return made.batch(self._step)

    def _hand_out(
        self, rows: list[dict[str, Any]], batch: Batch, time_ns: int, made: _Made
    ) -> None:
        """Give rows of one event time to the objects of their keys, in order of appearance."""
        places: dict[Any, list[int]] = {}
        names, stimuli = self._step.keys, batch.stimulus_time_ns.tolist()
        for place, row in enumerate(rows):
            key = row[names[0]] if len(names) == 1 else tuple([row[name] for name in names])
            places.setdefault(key, []).append(place)
        for key, own in places.items():
            one = self._objects.of(key, time_ns)
            one.stimulus_ns = max([one.stimulus_ns, *[stimuli[place] for place in own]])
            given = KeyedRows([rows[place] for place in own], time_ns)
            made.add(one, time_ns, self._objects.take_rows(one, given, batch))
            self._note_due(one)

    def _call_in_time(self, before_ns: int, made: _Made) -> None:
        """Call the objects that are due before that, in order."""
        while self._due and (self._due[0][0] < before_ns or before_ns == END_NS):
            due_ns, number, key = heappop(self._due)
            one = self._objects.by_key.get(key)
            if one is None or (one.due_ns, one.number) != (due_ns, number):
                continue  # it has thought better of it
            self.timers += 1
            made.add(one, due_ns, self._objects.call_in_time(one, due_ns))
            self._note_due(one)

    def _note_due(self, one: Keyed) -> None:
        if one.due_ns is not None:
            heappush(self._due, (one.due_ns, one.number, one.key))

    # -- state --------------------------------------------------------------------------

    def after_restore(self) -> None:
        """Note when objects are due."""
        for one in self._objects.by_key.values():
            self._note_due(one)


class _Made:
    """The rows that objects made in one read, in order.

    Args:
        stimulus_ns: of what moved the watermark, which they waited for.
    """

    def __init__(self, stimulus_ns: int) -> None:
        self._stimulus_ns = stimulus_ns
        self._rows: list[Mapping[str, Any]] = []
        self._times: list[int] = []
        self._stimuli: list[int] = []

    def add(self, one: Keyed, time_ns: int, rows: list[Mapping[str, Any]]) -> None:
        """Add the rows that an object made at an event time."""
        self._rows += rows
        self._times += [time_ns] * len(rows)
        self._stimuli += [max(one.stimulus_ns, self._stimulus_ns)] * len(rows)

    def batch(self, step: ProcessStep) -> Batch | None:
        """Return them as a batch; None for none."""
        if not self._rows:
            return None
        columns: Columns = {
            field.name: fitted(
                [row[field.name] for row in self._rows], field.type, name=field.name, step=step.name
            )
            for field in step.schema
        }
        return Batch(np.array(self._times), np.array(self._stimuli), columns)

"""Rows go to the objects of their keys in event-time order, with timers between.

```
rows   a1  b1  a4 │          watermark 4: a4 waits, for more may come of that time
calls  a: on_rows(1)  b: on_rows(1)  …  a: on_time(3)     a has set due_ns = 3
```

An object has all rows of its key and event time at once, then what falls due at that time. So the
cuts of reads cannot show.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

import numpy as np

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import END_NS, START_NS, Batch, Columns, GateRead, concat_batches
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.hashes import key_hashes
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.contract import LateOperator, Result
from slackwater.runtime.operators.ground.failed_rows import failed_rows
from slackwater.runtime.operators.ground.fit import fitted_columns
from slackwater.runtime.operators.ground.keep import most_text
from slackwater.runtime.operators.ground.keys import KeyIndex
from slackwater.runtime.operators.ground.late_rows import Missed
from slackwater.runtime.operators.ground.user_code import given, rows_of, sample_of
from slackwater.runtime.operators.process.objects import Keyed, KeyedRows, Objects
from slackwater.runtime.operators.process.step import ProcessStep

_MOST_CALLS = 10_000
"""Most calls of `on_time` of one object after the last row of the stream."""


class ProcessMachine(LateOperator):
    """The machine of a `ProcessStep`.

    Attributes:
        timers: calls of `on_time` so far.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_objects", of="_keys"),
        Field("_waiting", of="_keys", each=True),
        "_done_ns",
        "_newest_ns",
        "_tidied",
        "_missed",
        "timers",
    )

    def __init__(self, step: ProcessStep, *, most_kept_rows: int) -> None:
        self._step = step
        self._most_kept = most_kept_rows  # objects: which of them could go is not known
        self._looks_at = most_kept_rows  # when there are more, they are checked
        self._keys = KeyIndex(len(step.keys))
        self._objects = Objects(step)
        self._waiting: list[Batch] = []  # rows of a time of which more may come
        self._due: list[tuple[int, int, int]] = []  # heap: (when, number of the object, its code)
        self._done_ns = START_NS  # rows that happened before this have gone to their objects
        self._newest_ns = START_NS  # of the rows that have gone to their objects
        self._tidied = 0
        self._missed = Missed(keeps=self._step.keeps_late)
        self._failed = failed_rows(step.on_error)
        self._orders_keys = step.traits.orders_keys
        self.timers = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        for batch in (*released.late, *released.ports):
            if batch is not None and len(batch):
                self._wait(batch)
        until_ns = released.watermark_ns
        rows = None
        if until_ns > self._done_ns:
            rows = self._made(self._ready(until_ns), until_ns, released.progress.stimulus_ns)
            self._done_ns = until_ns
            self._tidy()
            if until_ns == END_NS:
                self._objects.forget_all()
            self._forget_keys()
        # What follows is as new as a row, or a time, to come.
        failed = self._failed.take() if self._failed is not None else []
        failed.sort(key=attrgetter("event_time_ns"))  # those with times too far away came first
        return Result(rows, released.progress.promise_ns, *self._missed.take(), failed=failed)

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        return {"timers": self.timers, "forgotten": self._objects.forgotten}

    @property
    def rows_held(self) -> int:  # noqa: D102
        return sum(len(batch) for batch in self._waiting) + len(self._objects.by_code)

    def _tidy(self) -> None:
        """Forget objects that are over: at the end, and whenever most may be.

        By the newest row and not by the promise, so that their number is the same in each run.
        """
        objects = self._objects
        if self._done_ns == END_NS or len(objects.by_code) > 2 * self._tidied + 1024:
            objects.forget_before(self._newest_ns)
            self._tidied = len(objects.by_code)

    def _forget_keys(self) -> None:
        """Forget keys without an object and without rows, when most are."""
        if self._keys.is_worth_keeping(self.rows_held):
            of_rows = [batch.codes for batch in self._waiting if batch.codes is not None]
            codes = np.array(list(self._objects.by_code), dtype=np.int64)
            keep_keys(self, np.concatenate([codes, *of_rows]))

    def _check_size(self, time_ns: int) -> None:
        """Forget objects that are over, as there may be too many.

        Raises:
            OperatorError: more are kept than may be.
        """
        objects, most = self._objects, self._most_kept
        objects.forget_before(time_ns)
        kept = len(objects.by_code)
        if kept > most:
            raise OperatorError(
                f"step {self._step.name!r}: {kept:,} keys are kept, more than "
                f"{most_text(self._step, most)}\n"
                "within= is long, or None, which keeps each key to the end\n"
                "forget keys with within=, or allow more with "
                "limits=sw.Limits(most_kept_rows=…)"
            )
        self._looks_at = max(most, kept + most // 8)  # its time is proportional to all keys

    # -- rows in, rows out --------------------------------------------------------------

    def _wait(self, batch: Batch) -> None:
        is_late = batch.event_time_ns < self._done_ns
        if is_late.any():
            self._missed.drop(batch.keep(is_late), self._done_ns)
        if not is_late.all():
            rows = batch.keep(~is_late)
            keys = [rows.columns[name] for name in self._step.keys]
            hashes = key_hashes(keys, len(rows)) if self._orders_keys else None
            codes = self._keys.codes(keys, len(rows))
            self._waiting.append(rows.with_(codes=codes, writers=hashes))

    def _ready(self, until_ns: int) -> Batch | None:
        """Return the rows that happened before that, in order; the others wait on."""
        if not self._waiting:
            return None
        rows = concat_batches(self._waiting)
        times = rows.event_time_ns
        if (times[1:] < times[:-1]).any():
            rows = rows.take(times.argsort(kind="stable"))
        ready = int(rows.event_time_ns.searchsorted(until_ns))
        if until_ns == END_NS:
            ready = len(rows)
        if ready == len(rows):
            self._waiting = []
            return rows
        self._waiting = [rows.slice(ready, len(rows))]
        return rows.slice(0, ready) if ready else None

    def _made(self, ready: Batch | None, until_ns: int, stimulus_ns: int) -> Batch | None:
        rows_out = _Made(stimulus_ns, orders_keys=self._orders_keys)
        ready, rows = self._given(ready)
        if ready is not None:
            self._hand_out(ready, rows, rows_out)
        self._call_in_time(until_ns, rows_out)
        return rows_out.batch(self._step)

    def _given(self, ready: Batch | None) -> tuple[Batch | None, list[dict[str, Any]]]:
        """Return rows as objects get them; `on_error` omits those with times too far away."""
        if ready is None:
            return None, []
        units, step = self._step.units, self._step.name
        try:
            batch = given(ready, units, step=step)
            return batch, rows_of(batch, step=step)
        except OperatorError:
            if self._failed is None:
                raise
        batch = self._failed.applied(self._all_given, ready, units)
        return batch, rows_of(batch, step=step)

    def _all_given(self, rows: Batch) -> Batch:
        batch = given(rows, self._step.units, step=self._step.name)
        rows_of(batch, step=self._step.name)
        return batch

    def _hand_out(self, batch: Batch, rows: list[dict[str, Any]], made: _Made) -> None:
        """Give rows to their keys' objects: by event time, then keys in order of appearance."""
        assert batch.codes is not None, "rows that wait have them"
        codes, times = batch.codes.tolist(), batch.event_time_ns.tolist()
        stimuli, names = batch.stimulus_time_ns.tolist(), self._step.keys
        self._objects.will_change(codes)
        start = 0
        while start < len(times):
            stop, time_ns = start + 1, times[start]
            while stop < len(times) and times[stop] == time_ns:
                stop += 1
            self._call_in_time(time_ns, made)
            about = partial(sample_of, batch, start, stop)
            for code, places in _places_by_key(codes, start, stop).items():
                values = tuple([rows[places[0]][name] for name in names])
                one = self._objects.of(code, values[0] if len(values) == 1 else values, time_ns)
                if batch.writers is not None:
                    one.key_hash = batch.writers.item(places[0])
                one.stimulus_ns = max([one.stimulus_ns, *[stimuli[place] for place in places]])
                self._give(one, KeyedRows([rows[place] for place in places], time_ns), about, made)
                self._note_due(one)
                if len(self._objects.by_code) > self._looks_at:
                    self._check_size(time_ns)
            self._newest_ns = time_ns
            start = stop

    def _give(self, one: Keyed, rows: KeyedRows, about: Callable[[], str], made: _Made) -> None:
        """Give an object its rows; `on_error` restores one that raises."""
        if self._failed is None:
            made.add(one, rows.event_time_ns, self._objects.take_rows(one, rows, about))
            return
        before = self._objects.saved(one)
        sent = copy.deepcopy(rows)  # the object may change them
        try:
            returned = self._objects.take_rows(one, rows, about)
            _columns_of(returned, self._step)  # whether they fit
        except OperatorError as problem:
            self._objects.put_back(one, before)
            self._failed.add(sent, problem, event_time_ns=rows.event_time_ns)
        else:
            made.add(one, rows.event_time_ns, returned)

    def _call_in_time(self, before_ns: int, made: _Made) -> None:
        """Call the objects that are due before that, in order; END_NS: all.

        Raises:
            OperatorError: at the end an object sets its `due_ns` again and again.
        """
        calls: dict[int, int] = {}  # after the last row, {number of an object: calls}
        while self._due and (self._due[0][0] < before_ns or before_ns == END_NS):
            due_ns, number, code = heappop(self._due)
            one = self._objects.by_code.get(code)
            if one is None or (one.due_ns, one.number) != (due_ns, number):
                continue  # the object has changed its due_ns
            self.timers += 1
            if before_ns == END_NS:
                calls[number] = calls.get(number, 0) + 1
                if calls[number] > _MOST_CALLS:
                    raise self._objects.never_ends(one, _MOST_CALLS)
            made.add(one, due_ns, self._objects.call_in_time(one, due_ns))
            self._note_due(one)

    def _note_due(self, one: Keyed) -> None:
        if one.due_ns is not None:
            heappush(self._due, (one.due_ns, one.number, one.code))

    # -- state --------------------------------------------------------------------------

    def derive(self) -> None:  # noqa: D102
        self._due = []
        for one in self._objects.by_code.values():
            self._note_due(one)


class _Made:
    """The rows that objects made in one read, in order.

    Args:
        stimulus_ns: the stimulus of the watermark's move, which they waited for.
        orders_keys: whether each row has the hash of its key as its writer.
    """

    def __init__(self, stimulus_ns: int, *, orders_keys: bool) -> None:
        self._stimulus_ns = stimulus_ns
        self._hashes: list[int] | None = [] if orders_keys else None
        self._rows: list[Mapping[str, Any]] = []
        self._times: list[int] = []
        self._stimuli: list[int] = []

    def add(self, one: Keyed, time_ns: int, rows: list[Mapping[str, Any]]) -> None:
        self._rows += rows
        self._times += [time_ns] * len(rows)
        self._stimuli += [max(one.stimulus_ns, self._stimulus_ns)] * len(rows)
        if self._hashes is not None:
            self._hashes += [one.key_hash] * len(rows)

    def batch(self, step: ProcessStep) -> Batch | None:
        """Return the rows as a batch; None if there are none."""
        if not self._rows:
            return None
        columns = _columns_of(self._rows, step)
        return Batch(
            event_time_ns=np.array(self._times),
            stimulus_time_ns=np.array(self._stimuli),
            columns=columns,
            writers=None if self._hashes is None else np.array(self._hashes, dtype=np.int64),
        )


def _places_by_key(codes: list[int], start: int, stop: int) -> dict[int, list[int]]:
    """Return {code of a key: places of its rows}, from `start` up to `stop`."""
    if stop - start == 1:
        return {codes[start]: [start]}
    places: dict[int, list[int]] = {}
    for place in range(start, stop):
        places.setdefault(codes[place], []).append(place)
    return places


def _columns_of(rows: list[Mapping[str, Any]], step: ProcessStep) -> Columns:
    values = {name: [row[name] for row in rows] for name in step.schema.names}
    return fitted_columns(values, step.schema, step=step.name)

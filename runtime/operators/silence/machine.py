"""Each key has the time of its last row, and falls silent after it.

```
after 3    rows   a1  b2  a3     b9         a1 to a3 are too close; b2 to b9 is a silence
           leave               b5  a6       a6 when the watermark has passed 6
```

A silence leaves when the watermark has passed its time, or a row of its key shows it: the same
moment, however rows are cut into reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    BoolArray,
    Columns,
    GateRead,
    Int64Array,
    concat_batches,
)
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.hashes import key_hashes
from slackwater.runtime.model.nullable import nulled
from slackwater.runtime.model.ranges import starts_of_runs
from slackwater.runtime.model.schema import column_of_arrow
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.arrays import GrowableArray
from slackwater.runtime.operators.ground.contract import LateOperator, Result
from slackwater.runtime.operators.ground.keys import KeyIndex
from slackwater.runtime.operators.ground.late_rows import Missed
from slackwater.runtime.operators.silence.step import SILENT_SINCE, SilenceStep


class Silences(NamedTuple):
    """Silences of keys; each field has shape (silences,).

    Attributes:
        codes: codes of the keys.
        heard_ns: event time of the last row, or from which the key is awaited.
        stimuli: stimulus time of that.
        has_come: whether it was a row of the key.
    """

    codes: Int64Array
    heard_ns: Int64Array
    stimuli: Int64Array
    has_come: BoolArray

    def take(self, places: Int64Array) -> Silences:
        """Return the silences at these places."""
        codes, heard_ns = self.codes.take(places), self.heard_ns.take(places)
        return Silences(codes, heard_ns, self.stimuli.take(places), self.has_come.take(places))


class SilenceMachine(LateOperator):
    """The machine of a `SilenceStep`. Keys that are silent are forgotten.

    Silences leave by event time, then by the hash of the key.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_heard_ns", by="_keys"),
        Field("_stimuli", by="_keys"),
        Field("_has_come", by="_keys"),
        "_has_begun",
        "_done_ns",
        "_missed",
    )

    def __init__(self, step: SilenceStep, *, most_kept_rows: int) -> None:
        self._step = step
        self._keys = KeyIndex(len(step.keys))
        # By key: when it was last heard of. START_NS: it is not watched.
        self._heard_ns = GrowableArray(np.int64, fill=START_NS)
        self._stimuli = GrowableArray(np.int64, fill=START_NS)
        self._has_come = GrowableArray(np.bool_)
        self._has_begun = False  # whether a row has come, of any key
        self._done_ns = START_NS  # silences that begin to count before this have left
        self._missed = Missed(keeps=step.keeps_late)
        self._least_ns = END_NS  # no watched key was last heard of before

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        parts: list[Silences] = []
        if (rows := self._in_time(released)) is not None:
            if not self._has_begun:
                self._begin(rows)
            parts.append(self._between(rows))
        self._done_ns = max(self._done_ns, released.watermark_ns)
        # A row may still come at the watermark, and ends a silence that is not longer.
        before_ns = self._done_ns - self._step.after_ns
        if self._done_ns == END_NS:
            before_ns = END_NS
        made: Batch | None = None
        if self._least_ns < before_ns:
            parts.append(self._until(before_ns))
        if any(len(part.codes) for part in parts):
            made = self._made(parts, released.progress.stimulus_ns)
            if self._keys.is_worth_keeping(self.rows_held) or self._done_ns == END_NS:
                keep_keys(self, self._watched())
        return Result(made, released.progress.promise_ns, *self._missed.take())

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return len(self._watched())

    def derive(self) -> None:  # noqa: D102
        heard_ns = self._heard_ns.values.take(self._watched())
        self._least_ns = int(heard_ns.min(initial=END_NS))

    def _watched(self) -> Int64Array:
        return (self._heard_ns.values > START_NS).nonzero()[0]

    def _in_time(self, released: GateRead) -> Batch | None:
        """Return the rows that may end a silence; None if none may."""
        rows: list[Batch] = []
        for batch in (released.late[0], released.ports[0]):  # a late one may have the very time
            if batch is not None and len(batch):
                is_late = batch.event_time_ns < self._done_ns
                if is_late.any():
                    self._missed.drop(batch.keep(is_late), self._done_ns)
                rows.append(batch.keep(~is_late) if is_late.any() else batch)
        rows = [batch for batch in rows if len(batch)]
        return concat_batches(rows) if rows else None

    @property
    def _by_key(self) -> tuple[GrowableArray, GrowableArray, GrowableArray]:
        return self._heard_ns, self._stimuli, self._has_come

    def _codes_of(self, columns: Columns, rows: int) -> Int64Array:
        codes = self._keys.codes([columns[name] for name in self._step.keys], rows)
        for own in self._by_key:
            own.resize(len(self._keys))
        return codes

    def _begin(self, rows: Batch) -> None:
        """Await the known keys from the first row on."""
        self._has_begun = True
        if not self._step.awaited:
            return
        columns: Columns = {}
        for name, values in zip(
            self._step.keys, zip(*self._step.awaited, strict=True), strict=True
        ):
            array = pa.array(values, self._step.schema.field(name).type)
            columns[name] = column_of_arrow(array)
        codes = self._codes_of(columns, len(self._step.awaited))
        self._heard_ns.values[codes] = rows.event_time_ns.item(0)
        self._stimuli.values[codes] = rows.stimulus_time_ns.item(0)
        self._least_ns = min(self._least_ns, rows.event_time_ns.item(0))

    def _between(self, rows: Batch) -> Silences:
        """Note rows in order; return the silences that they show to have been."""
        codes = self._codes_of(rows.columns, len(rows))
        order = codes.argsort(kind="stable")
        codes, times = codes.take(order), rows.event_time_ns.take(order)
        stimuli = rows.stimulus_time_ns.take(order)
        first = starts_of_runs(codes)
        follows = np.ones(len(codes), dtype=np.bool_)
        follows[first] = False
        known, last = codes.take(first), np.append(first[1:], len(codes)) - 1
        heard = Silences(codes, np.roll(times, 1), np.roll(stimuli, 1), follows)
        for before, own in zip(heard[1:], self._by_key, strict=True):
            before[first] = own.values.take(known)
        is_watched = heard.heard_ns > START_NS
        silent = (is_watched & (heard.heard_ns < times - self._step.after_ns)).nonzero()[0]
        self._heard_ns.values[known] = times.take(last)
        self._stimuli.values[known] = stimuli.take(last)
        self._has_come.values[known] = True
        self._least_ns = min(self._least_ns, int(times.take(last).min()))
        return heard.take(silent)

    def _until(self, before_ns: int) -> Silences:
        """Return the silences of keys last heard of before a time, and forget them."""
        heard_ns = self._heard_ns.values
        codes = ((heard_ns > START_NS) & (heard_ns < before_ns)).nonzero()[0]
        silences = Silences(codes, *(own.values.take(codes) for own in self._by_key))
        heard_ns[codes] = START_NS
        self.derive()
        return silences

    def _made(self, parts: Sequence[Silences], stimulus_ns: int) -> Batch:
        """Return the rows of silences, in order."""
        codes, heard_ns, stimuli, has_come = map(np.concatenate, zip(*parts, strict=True))
        keys = self._keys.columns(codes)
        order = np.lexsort([key_hashes(keys, len(codes)), heard_ns])
        heard_ns = heard_ns.take(order)
        columns: Columns = {
            name: column.take(order) for name, column in zip(self._step.keys, keys, strict=True)
        }
        columns[SILENT_SINCE] = nulled(heard_ns, has_come.take(order))
        return Batch(
            event_time_ns=heard_ns + self._step.after_ns,
            stimulus_time_ns=np.maximum(stimuli.take(order), stimulus_ns),
            columns=columns,
        )

"""Only the first of equal rows leaves; it is known while another may follow.

```
within 3   key a   1  2     5  8        1 leaves; 2 is like it; 5 is not, and leaves; 8 is like 5
                   ├──────┤ ├──────┤
```

A row in order can only equal the last of its key that left. A late row may equal any that has
left. If rows that it may equal have been forgotten, it is dropped unseen: so no two equal rows
ever leave, and in an order that is complete none is missing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Batch, GateRead, Int64Array, concat_batches
from slackwater.runtime.model.divided import keep, keep_keys
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.dedupe.step import DedupeStep
from slackwater.runtime.operators.ground.arrays import GrowableArray
from slackwater.runtime.operators.ground.contract import LateOperator, Result
from slackwater.runtime.operators.ground.keys import KeyIndex
from slackwater.runtime.operators.ground.late_rows import Missed

_FEW_ROWS = 16
_ROUNDS = 3
"""So many rows of one key that leave with one read are found all at once."""


class DedupeMachine(LateOperator):
    """The machine of a `DedupeStep`.

    Args:
        step: the keys, and how far apart equal rows may be.
        most_kept_rows: beyond so many rows known the oldest are forgotten, as far as rows in
            order do not need them. The search for these runs once for each eighth more.

    Attributes:
        duplicates: rows so far that equalled a row that had left.
        dropped_early: rows so far that were too many, and dropped before the frontier passed.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_codes", of="_keys"),
        Field("_times", by="_codes"),
        Field("_newest", by="_keys"),
        "_horizon_ns",
        "_tidied",
        "_looks_at",
        "_missed",
        "duplicates",
        "dropped_early",
    )

    def __init__(self, step: DedupeStep, *, most_kept_rows: int) -> None:
        self._step = step
        self._most_kept_rows = most_kept_rows
        self._keys = KeyIndex(len(self._step.on))
        # The rows that have left and are known, in the order in which they left:
        self._codes = GrowableArray(np.int64, is_log=True)
        self._times = GrowableArray(np.int64, is_log=True)
        self._newest = GrowableArray(np.int64, fill=START_NS)  # by code: when its newest happened
        self._by_code: dict[int, list[int]] | None = None  # times by code; made for late rows
        self._horizon_ns = START_NS  # rows that happened before this are not known any more
        self._looks_at = self._most_kept_rows  # more rows than this: some are to be forgotten
        self._tidied = 0  # how many rows there were when the forgotten ones were last cleared away
        self._missed = Missed(keeps=self._step.keeps_late)
        self.duplicates = self.dropped_early = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        late, in_order = released.late[0], released.ports[0]
        leaves = [
            self._of_late(late) if late is not None and len(late) else None,
            self._of_ordered(in_order) if in_order is not None and len(in_order) else None,
        ]
        self._forget(released)
        batches = [batch for batch in leaves if batch is not None]
        rows = concat_batches(batches) if batches else None
        return Result(rows, released.progress.promise_ns, *self._missed.take())

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        return {"duplicates": self.duplicates, "dropped_early": self.dropped_early}

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return len(self._times)

    # -- rows in, rows out --------------------------------------------------------------

    def _of_ordered(self, batch: Batch) -> Batch | None:
        if batch.event_time_ns.item(0) - self._step.within_ns < self._horizon_ns:
            return self._of_late(batch)  # such as rows after the end
        codes, times = self._codes_of(batch), batch.event_time_ns
        newest, within_ns = self._newest.values, self._step.within_ns
        leaves: list[Int64Array] = []
        rest = (times - within_ns > newest.take(codes)).nonzero()[0]
        for _ in range(_ROUNDS if len(batch) > _FEW_ROWS else 0):
            if not len(rest):
                break
            of_rest, first = np.unique(codes.take(rest), return_index=True)
            first = rest.take(first)
            newest[of_rest] = times.take(first)
            leaves.append(first)
            rest = rest[times.take(rest) - within_ns > newest.take(codes.take(rest))]
        slow: list[int] = []
        for place, code, time_ns in zip(
            rest.tolist(), codes.take(rest).tolist(), times.take(rest).tolist(), strict=True
        ):
            if time_ns - within_ns > newest.item(code):
                newest[code] = time_ns
                slow.append(place)
        places = np.concatenate([*leaves, np.array(slow, dtype=np.int64)])
        places.sort()
        return self._left(batch, codes, places)

    def _of_late(self, batch: Batch) -> Batch | None:
        codes, known = self._codes_of(batch), self._known_by_code()
        newest, within_ns, horizon_ns = self._newest.values, self._step.within_ns, self._horizon_ns
        leaves: list[int] = []
        unknown: list[int] = []
        for place, (code, time_ns) in enumerate(
            zip(codes.tolist(), batch.event_time_ns.tolist(), strict=True)
        ):
            of_key = known.setdefault(code, [])
            at = bisect_left(of_key, max(time_ns - within_ns, horizon_ns))
            if at < len(of_key) and of_key[at] <= time_ns + within_ns:
                self.duplicates += 1
            elif time_ns - within_ns < horizon_ns:
                unknown.append(place)
            else:
                insort(of_key, time_ns)
                newest[code] = max(newest.item(code), time_ns)
                leaves.append(place)
        if unknown:
            self._miss(batch.take(np.array(unknown)))
        duplicates = self.duplicates  # counted above, as rows that were missed are no duplicates
        rows = self._left(batch, codes, np.array(leaves, dtype=np.int64), is_known=True)
        self.duplicates = duplicates
        return rows

    def _miss(self, rows: Batch) -> None:
        reach_ns = min(self._horizon_ns, END_NS - self._step.within_ns) + self._step.within_ns
        self._missed.drop(rows, reach_ns)

    def _left(
        self, batch: Batch, codes: Int64Array, places: Int64Array, *, is_known: bool = False
    ) -> Batch | None:
        """Return the rows at these places; they are known from now on."""
        self.duplicates += len(batch) - len(places)
        if not len(places):
            return None
        own_codes, own_times = codes.take(places), batch.event_time_ns.take(places)
        self._codes.append(own_codes)
        self._times.append(own_times)
        if self._by_code is not None and not is_known:
            for code, time_ns in zip(own_codes.tolist(), own_times.tolist(), strict=True):
                insort(self._by_code.setdefault(code, []), time_ns)
        return batch if len(places) == len(batch) else batch.take(places)

    def _codes_of(self, batch: Batch) -> Int64Array:
        codes = self._keys.codes([batch.columns[name] for name in self._step.on], len(batch))
        self._newest.resize(len(self._keys))
        return codes

    def _known_by_code(self) -> dict[int, list[int]]:
        if self._by_code is None:
            self._by_code = {}
            order = self._times.values.argsort(kind="stable")
            codes, times = self._codes.values.take(order), self._times.values.take(order)
            for code, time_ns in zip(codes.tolist(), times.tolist(), strict=True):
                self._by_code.setdefault(code, []).append(time_ns)
        return self._by_code

    # -- state --------------------------------------------------------------------------

    def _forget(self, released: GateRead) -> None:
        self._horizon_ns = max(self._horizon_ns, self._before(released.progress.promise_ns))
        is_end = self._horizon_ns == END_NS
        if is_end or len(self._times) > 2 * self._tidied + 1024:
            self._tidy()
        if len(self._times) > self._looks_at:
            # Not for each read: its time is proportional to all known rows.
            self._tidy()
            self._drop_early(self._before(released.watermark_ns))
            more = len(self._times) + self._most_kept_rows // 8
            self._looks_at = max(more, self._most_kept_rows)

    def _before(self, passed_ns: int) -> int:
        # Rows from this time on need no older row.
        return END_NS if passed_ns == END_NS else max(START_NS, passed_ns - self._step.within_ns)

    def _drop_early(self, most_ns: int) -> None:
        """Forget the oldest rows that may go, until few enough are known."""
        before = len(self._times)
        excess = before - self._most_kept_rows + self._most_kept_rows // 16
        if excess <= 0 or most_ns <= self._horizon_ns:
            return
        oldest = np.partition(self._times.values, excess - 1)
        self._horizon_ns = max(self._horizon_ns, min(oldest.item(excess - 1) + 1, most_ns))
        self._tidy()
        self.dropped_early += before - len(self._times)

    def _tidy(self) -> None:
        """Clear away forgotten rows, and keys without rows."""
        keep(self, "_codes", np.flatnonzero(self._times.values >= self._horizon_ns))
        if self._horizon_ns == END_NS or self._keys.is_worth_keeping(len(self._codes)):
            keep_keys(self, self._codes.values)
        self._tidied = len(self._times)

    def derive(self) -> None:  # noqa: D102
        self._by_code = None

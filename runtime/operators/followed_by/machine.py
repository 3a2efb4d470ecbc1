"""Rows in stream order become pairs of an event and its first follower.

```
within 9   first   1        5           every `first` with the first `then` after it:
           then          4        8     (1, 4)  (5, 8)
drift ±1                                4 and 5 may be the other way round: (5, 4) too, uncertain;
                                        (1, 8) not: 4 surely follows 1, and is surely before 8
```

A match leaves when the later of its rows, by their clocks, comes: any event that may keep another
from being the first has come before that. So the cuts of reads cannot show.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.runtime.errors import OperatorError
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
from slackwater.runtime.model.divided import keep, keep_keys
from slackwater.runtime.model.row_marks import UNCERTAIN, marked
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.followed_by.before import (
    Events,
    Followers,
    Moments,
    followers,
    not_done,
)
from slackwater.runtime.operators.followed_by.step import FIRST, THEN, FollowedByStep
from slackwater.runtime.operators.ground.contract import LateOperator, Result
from slackwater.runtime.operators.ground.drift import CERTAIN, Drift
from slackwater.runtime.operators.ground.keep import most_text
from slackwater.runtime.operators.ground.keys import KeyIndex, any_null
from slackwater.runtime.operators.ground.late_rows import Missed
from slackwater.runtime.operators.ground.user_code import holds


class FollowedByMachine(LateOperator):
    """The machine of a `FollowedByStep`.

    A late row is not looked at: it is counted in `late_dropped`. Event and stimulus time of a match
    are the later ones of its rows; matches leave by their later row, then by the other one.

    Costs: each row of a read is searched for among the waiting events of its key.

    Args:
        step: the two predicates, and how far apart the events of a match may be.
        most_kept_rows: events that may wait, at most.

    Attributes:
        bounds_cut: rows so far whose own bound was more than the most.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_held", of="_keys"),
        "_turn",
        "_passed_ns",
        "_missed",
        "bounds_cut",
    )

    def __init__(self, step: FollowedByStep, *, most_kept_rows: int) -> None:
        self._step, self._most_kept_rows = step, most_kept_rows
        self._drift = step.drift or Drift(0)
        came = step.names
        self._kept = sorted({*step.keys, *(old for _, old in came.values())})
        self._names = {  # {name it leaves under: (which row of the match, name it came under)}
            name: came.get(name, (FIRST, name))
            for name in step.schema.names
            if name in came or name in step.keys
        }
        self._keys = KeyIndex(len(self._step.keys))
        self._held = Held()
        self._turn = 0  # the place in the stream of the next event
        self._passed_ns = START_NS
        self._missed = Missed(keeps=self._step.keeps_late)
        self.bounds_cut = 0

    def work(self, released: GateRead, now_ns: int) -> Result:
        """Take rows; return the matches that they complete, or may complete.

        Raises:
            OperatorError: more events wait than may be held.
        """
        matches = None
        if (in_order := self._missed.in_time(released, self._passed_ns)) is not None:
            self._passed_ns = max(self._passed_ns, in_order.event_time_ns.item(-1))
            matches = self._matched(in_order)
        self._passed_ns = max(self._passed_ns, released.watermark_ns)
        self._forget()
        if len(self._held) > self._most_kept_rows:
            raise OperatorError(
                f"step {self._step.name!r}: {len(self._held):,} events wait for one that follows "
                f"them, more than {most_text(self._step, self._most_kept_rows)}; "
                "make within= shorter, let `first=` be true of less, or allow more with "
                "limits=sw.Limits(most_kept_rows=…)"
            )
        return Result(matches, released.progress.promise_ns, *self._missed.take())

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        return self._drift.counts(self.bounds_cut)

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return len(self._held)

    # -- rows in, matches out -----------------------------------------------------------

    def _matched(self, batch: Batch) -> Batch | None:
        """Take rows in order; return the matches of which one is the later row."""
        begins, follows = self._is(batch, FIRST), self._is(batch, THEN)
        nulls = any_null([batch.columns[name] for name in self._step.keys])
        wanted = begins | follows if nulls is None else (begins | follows) & ~nulls
        which = np.flatnonzero(wanted)
        if not len(which):
            return None
        rows, begins, follows = batch.take(which), begins[which], follows[which]
        bounds, cut = self._drift.bounds_ns(rows, step=self._step.name)
        self.bounds_cut += cut
        codes = self._keys.codes([rows.columns[name] for name in self._step.keys], len(rows))
        turns = np.arange(self._turn, self._turn + len(rows))
        self._turn += len(rows)
        before = len(self._held)
        columns: Columns = {name: rows.columns[name] for name in self._kept}
        rows = Batch(
            event_time_ns=rows.event_time_ns,
            stimulus_time_ns=rows.stimulus_time_ns,
            columns=columns,
            marks=rows.marks,
        )
        events = Events(codes, rows.event_time_ns, bounds, turns)
        self._held.append(rows, events, begins, follows)
        return self._found(before)

    def _is(self, batch: Batch, which: int) -> BoolArray:
        predicate = self._step.first if which == FIRST else self._step.then
        return holds(predicate, batch, step=self._step.name)

    def _found(self, before: int) -> Batch | None:
        """Return the matches with at least one row whose place is `before` or later."""
        held = self._held
        firsts = self._of_keys_that_came(held.may_begin, held.may_follow, before)
        thens = self._of_keys_that_came(held.may_follow, held.may_begin, before)
        if not len(firsts) or not len(thens):
            return None
        pairs = followers(
            held.events.take(firsts),
            held.events.take(thens),
            held.done.take(firsts),
            most_ns=self._drift.most_ns,
        )
        held.done.at_ns[firsts], held.done.ties[firsts] = pairs.done
        return self._left(firsts.take(pairs.firsts), thens.take(pairs.thens), pairs, before)

    def _of_keys_that_came(self, these: BoolArray, others: BoolArray, before: int) -> Int64Array:
        """Return places of new rows, and of older rows with new partners of their key.

        Args:
            these: shape (held,), the rows that are wanted.
            others: shape (held,), the rows that make matches with them.
            before: new rows have this place or a later one.
        """
        codes = self._held.events.codes
        came = np.zeros(max(1, len(self._keys)), dtype=np.bool_)
        came[codes[before:][others[before:]]] = True
        wanted = these.copy()
        wanted[:before] &= came.take(codes[:before])
        return np.flatnonzero(wanted)

    def _left(
        self, firsts: Int64Array, thens: Int64Array, found: Followers, before: int
    ) -> Batch | None:
        """Return the rows that leave, of pairs that may follow each other.

        Args:
            firsts: shape (pairs,), places among the events held.
            thens: shape (pairs,), places among the events held.
            found: whether the second of each pair surely follows.
            before: pairs of older events have left already, or never will.
        """
        events, within_ns = self._held.events, self._step.within_ns
        off_ns = events.bounds.take(firsts) + events.bounds.take(thens)
        apart_ns = events.times.take(thens) - events.times.take(firsts)
        later = np.maximum(firsts, thens)
        leaves = np.flatnonzero((later >= before) & (apart_ns - off_ns <= within_ns))
        if not len(leaves):
            return None
        leaves = leaves.take(
            np.lexsort((firsts.take(leaves), thens.take(leaves), later.take(leaves)))
        )
        firsts, thens = firsts.take(leaves), thens.take(leaves)
        certain = found.surely_follows.take(leaves)
        certain &= (apart_ns + off_ns).take(leaves) <= within_ns
        rows = self._held.rows
        assert rows is not None
        pair = rows.take(firsts), rows.take(thens)
        columns: Columns = {
            name: pair[which].columns[came] for name, (which, came) in self._names.items()
        }
        if self._step.drift:
            columns[CERTAIN] = certain
        marks = None
        for one in pair:
            if one.marks is not None:
                marks = one.marks if marks is None else marks | one.marks
        return Batch(
            event_time_ns=np.maximum(pair[0].event_time_ns, pair[1].event_time_ns),
            stimulus_time_ns=np.maximum(pair[0].stimulus_time_ns, pair[1].stimulus_time_ns),
            columns={name: columns[name] for name in self._step.schema.names},
            marks=marked(UNCERTAIN, ~certain, marks),
        )

    # -- state --------------------------------------------------------------------------

    def _forget(self) -> None:
        held, most_ns = self._held, self._drift.most_ns
        if self._passed_ns == END_NS:
            held.clear()
        else:
            held.forget(self._passed_ns, within_ns=self._step.within_ns, most_ns=most_ns)
        if self._keys.is_worth_keeping(len(held)):
            keep_keys(self, held.events.codes)


class Held:
    """Rows that may begin or end a match, in the order of the stream.

    Attributes:
        rows: rows, with the columns that matches need; None: no row has come yet.
        events: the key, time, bound and place in the stream of each.
        may_begin: shape (rows,): whether it matches `first`.
        may_follow: shape (rows,): whether it matches `then`.
        done: the earliest end of the events that surely follow each.
    """

    STATE = Fields(
        Field("events", of=OWNER),
        Field("rows", by="events"),
        Field("may_begin", by="events"),
        Field("may_follow", by="events"),
        Field("done", by="events"),
    )

    def __init__(self) -> None:
        none = np.empty(0, dtype=np.int64)
        self.rows: Batch | None = None
        self.events = Events(none, none, none, none)
        self.may_begin = self.may_follow = np.empty(0, dtype=np.bool_)
        self.done = not_done(0)

    def __len__(self) -> int:
        return len(self.events.times)

    def append(
        self, rows: Batch, events: Events, may_begin: BoolArray, may_follow: BoolArray
    ) -> None:
        """Add events that come after all others in the stream."""
        self.rows = rows if self.rows is None else concat_batches([self.rows, rows])
        both = zip(self.events, events, strict=True)
        self.events = Events(*(np.concatenate(pair) for pair in both))
        self.may_begin = np.concatenate([self.may_begin, may_begin])
        self.may_follow = np.concatenate([self.may_follow, may_follow])
        done = zip(self.done, not_done(len(rows)), strict=True)
        self.done = Moments(*(np.concatenate(pair) for pair in done))

    def forget(self, passed_ns: int, *, within_ns: int, most_ns: int) -> None:
        """Forget events that can match no event from now on, by their clocks.

        Args:
            passed_ns: no event that follows is older by its clock.
            within_ns: how far apart the events of a match may be.
            most_ns: how far clocks may be off.
        """
        if self.rows is None or passed_ns == START_NS:
            return
        times, bounds = self.events.times, self.events.bounds
        # Sums stay in 64 bits: times are within 2**62, all lengths within 2**61.
        is_near = passed_ns - most_ns <= times + (within_ns + bounds)
        self.may_begin &= is_near & (self.done.at_ns >= passed_ns - most_ns)
        self.may_follow &= (passed_ns - most_ns <= times + bounds) & (most_ns > 0)
        kept = np.flatnonzero(self.may_begin | self.may_follow)
        if len(kept) < len(self):
            keep(self, "events", kept)

    def clear(self) -> None:
        """Forget all."""
        keep(self, "events", np.empty(0, dtype=np.int64))

"""Sliding-window join of two streams: pairs of equal keys whose event times are close.

```
within 2   left   1a      4a             row by row in the order (event time, port):
           right     2a  3b  5a          2a finds 1a;  4a finds 2a;  5a finds 4a
```

Many rows are joined at a time, and the results put into the order of one at a time. A join of a
stream with itself gives every pair (i, j) and (j, i), and each row with itself. Null keys
equal nothing, as in SQL; NaN is a value and equals NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.expressions.inside import reads_event_time
from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    Columns,
    GateRead,
    Int64Array,
    concat_batches,
    format_ns,
)
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.contract import LateOperator, Result
from slackwater.runtime.operators.ground.keys import KeyIndex, any_null
from slackwater.runtime.operators.ground.late_rows import LateRows, Missed
from slackwater.runtime.operators.ground.user_code import holds
from slackwater.runtime.operators.join.one_row import COMPARED_AT_MOST, OneRow
from slackwater.runtime.operators.join.rows import (
    Arrivals,
    Pairs,
    order_of_pairs,
    sided,
    take_pairs,
)
from slackwater.runtime.operators.join.state import JoinState
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.operators.join.unmatched import Unmatched
from slackwater.runtime.plan.traits import Replica

Names = tuple[dict[str, str], dict[str, str]]
"""Columns of the left and of the right: {name they leave under: name they came under}."""
_LEFT, _RIGHT = 0, 1
_NONE = np.empty(0, dtype=np.int64)
_FEW_ROWS = 8
_MANY_PAIRS = 65_536
_LONGEST_WITHIN_NS = 1 << 61
"""73 years: sums of an event time of our age and a few times this fit in 64 bits."""


class JoinMachine(LateOperator):
    """The machine of a `JoinStep`.

    A row is held until the frontier (`keep="promise"`) or the watermark (`keep="slack"`) is more
    than `within_ns` past it; it finds those rows of the other side that came before it and are
    held. Late rows join in the same way, before the rows in order, and find rows that are ahead of
    them too. A late row that would not be held finds nothing and is counted in `late_dropped`.
    Event and stimulus time of a pair are the later ones of its rows. Source: [mace] Def. 2.

    By the frontier every row finds all its partners: no row that follows is older than that, so
    none is a partner of a dropped one. By the watermark, as in [ssg], late rows may miss some.

    Args:
        step: the keys, and how far apart partners may be.
        most_kept_rows: beyond so many rows held the oldest go as under `keep="slack"`.

    Attributes:
        comparisons: pairs so far with equal keys and close times, without `where`.
        dropped_early: rows so far that were too many, and dropped before the frontier passed.

    Raises:
        SettingError: `within_ns` is more than 73 years.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_state", of="_keys"),
        Field("_unmatched", of="_keys"),
        "_passed_ns",
        "_missed",
        "_rows_seen",
        "comparisons",
        "dropped_early",
    )

    def __init__(self, step: JoinStep, *, most_kept_rows: int) -> None:
        if step.within_ns > _LONGEST_WITHIN_NS:
            raise SettingError(
                f"step {step.name!r}: within={format_ns(step.within_ns)} is more than 73 years, "
                "the most that a join takes; give the events nearer times"
            )
        self._step = step
        self._most_kept_rows = most_kept_rows
        renamed = {leaves: name for name, leaves in step.right_names.items()}
        where_reads = sorted(step.where.columns()) if step.where is not None else []
        leaving = step.schema.names
        if step.how in ("semi", "anti"):
            self._names: Names = ({name: name for name in leaving}, {})
        else:
            self._names = _of_sides(leaving, renamed)
        self._where_reads_time = step.where is not None and reads_event_time(step.where)
        self._where_columns = _of_sides(where_reads, renamed)
        replica = step.replica
        self._replica = replica if replica is not None and replica.share == "all" else None
        is_plain = step.how == "inner" and not step.waits
        self._may_be_one = self._replica is None and not step.keeps_late and is_plain
        self._on = (step.left_on, step.right_on)
        alone = tuple(step.columns_alone(side) if side in step.alone else {} for side in (0, 1))
        left_held, right_held = (
            tuple(dict.fromkeys(name for names in read for name in names.values()))
            for read in zip(self._names, self._where_columns, alone, strict=True)
        )
        self._state = JoinState(
            left_held,
            right_held,
            reaches_ns=step.reaches_ns,
            has_matches=step.how != "inner",
        )
        self._unmatched = Unmatched(step, self._state.rows) if step.waits else None
        (self._summary, _) = step.traits.summaries
        self._keys = KeyIndex(len(step.left_on))
        self._one = OneRow(self._state, self._keys, step, self._names)
        self._passed_ns = START_NS  # the time that rows are held by: the frontier, or the watermark
        self._rows_seen = 0
        self._missed = Missed(keeps=self._step.keeps_late)
        self.comparisons = 0
        self.dropped_early = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        missed = self._missed
        compared = self.comparisons
        left = [self._join(*released.late), self._join(*released.ports)]
        is_by_promise = self._step.keep == "promise"
        passed_ns = released.progress.promise_ns if is_by_promise else released.watermark_ns
        stimulus_ns = released.progress.stimulus_ns
        if passed_ns > self._passed_ns:
            self._passed_ns = passed_ns
            horizon_ns = max(self._horizon_ns(passed_ns), self._state.horizon_ns)
            left.append(self._advance(horizon_ns, stimulus_ns))
        else:
            self._state.tidy()
        if is_by_promise and len(self._state.rows) > self._most_kept_rows:
            left.append(self._drop_early(released.watermark_ns, stimulus_ns))
        results = [rows for rows in left if rows is not None]
        return Result(  # stimulus and event time of a pair are those of its later row
            concat_batches(results) if results else None,
            self._summary.promise_ns(released.progress.promise_ns),
            *missed.take(),
            self.comparisons - compared,
        )

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        counts = {"comparisons": self.comparisons, "dropped_early": self.dropped_early}
        if self._unmatched is not None:
            counts["missed_unmatched"] = self._unmatched.missed
        return counts

    def _advance(self, horizon_ns: int, stimulus_ns: int) -> Batch | None:
        """Drop rows older than the horizon; return the results that leave before that."""
        unmatched, rows = self._unmatched, None
        if unmatched is not None:
            rows = unmatched.leave(
                max(horizon_ns, self._summary.promise_ns(self._passed_ns)), stimulus_ns
            )
        if self._state.expire(horizon_ns):
            self._forget_keys()
        return rows

    def _horizon_ns(self, passed_ns: int) -> int:
        if passed_ns == END_NS:
            return END_NS
        return max(START_NS, passed_ns - self._step.within_ns)

    def _drop_early(self, watermark_ns: int, stimulus_ns: int) -> Batch | None:
        """Drop the oldest rows that the slack allows, until few enough are held.

        A little fewer, so that it happens now and then, not for each read. Return the results that
        leave before that.
        """
        state = self._state
        excess = len(state.rows) - self._most_kept_rows + self._most_kept_rows // 16
        horizon_ns = min(state.rows.newest_of(excess) + 1, self._horizon_ns(watermark_ns))
        if horizon_ns <= state.horizon_ns or not state.rows.would_drop(horizon_ns):
            return None
        self.dropped_early += state.count_between(state.horizon_ns, horizon_ns)
        return self._advance(horizon_ns, stimulus_ns)

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        own = 0 if self._unmatched is None else self._unmatched.rows_held
        return len(self._state.rows) + own

    # -- rows in ------------------------------------------------------------------------

    def _join(self, left: Batch | None, right: Batch | None) -> Batch | None:
        if left is None and right is None:
            return None
        if self._may_be_one and (left is None or right is None):
            side, row = (_RIGHT, right) if left is None else (_LEFT, left)
            if row is not None and (code := self._one.code(row, side)) is not None:
                return self._join_one(row, side, code)
        if left is not None:
            left = self._admitted(left, _LEFT)
        if right is not None:
            right = self._admitted(right, _RIGHT)
        if left is None and right is None:
            return None
        new = Arrivals(left, right, self._codes(left, _LEFT), self._codes(right, _RIGHT))
        if self._replica is not None:
            return self._join_share(new, self._replica)
        return self._join_new(new)

    def _join_one(self, batch: Batch, side: int, code: int) -> Batch | None:
        position = self._state.rows.end
        partners = self._one.partners(batch, side, code)
        if not partners:
            return None
        if len(partners) <= _FEW_ROWS and self._step.where is None:
            self.comparisons += len(partners)
            one = self._one
            if len(partners) == 1:
                return one.result(batch, side, partners[0])
            return one.results(batch, side, partners)
        others, own = np.array(partners), np.full(len(partners), position)
        pairs = self._selected((others, own) if side else (own, others))
        return self._results(pairs) if len(pairs[_LEFT]) else None

    def _join_share(self, new: Arrivals, replica: Replica) -> Batch | None:
        """Return the pairs whose earlier row is this replica's; hold only its own new rows.

        Row number j, over all that could find a partner, is that of replica j mod n. So each
        pair is found by one replica, and each compares all rows with 1/n of them.
        Source: ScaleJoin, [8] in [ssg].
        """
        state = self._state
        is_ours = new.turns % replica.of == (replica.index - self._rows_seen) % replica.of
        self._rows_seen += len(new.keys)
        if state.horizon_ns > self._horizon_ns(self._passed_ns):
            # Each replica drops rows at its own pace; the numbers are those of all rows.
            is_held = new.times >= state.horizon_ns
            self.dropped_early += int((~is_held & is_ours).sum())
            still = new.keep(is_held)
            if still is None:
                return None
            new, is_ours = still, is_ours[is_held]
        state.make_fit(new, keys=2 * len(self._keys))
        state.settle(_LEFT, _RIGHT)
        first = state.rows.end
        state.rows.append(new)
        results = self._found(self._state.shared_candidates(new, is_ours, first), first)
        state.rows.drop_from(first)
        stored = new.keep(is_ours)
        if stored is not None:
            state.append(stored)
        return results

    def _join_new(self, new: Arrivals) -> Batch | None:
        first = self._state.rows.end
        rows = len(new.keys)
        if self._unmatched is not None:
            self._unmatched.hold(new, first)
        if rows <= _FEW_ROWS and rows * len(self._state.rows) <= COMPARED_AT_MOST:
            self._state.append(new)
            pairs = self._selected(self._state.scan(first))
            return self._results(pairs) if len(pairs[_LEFT]) else None
        return self._found(self._candidates(new), first)

    def _found(self, candidates: Iterator[Pairs], first: int) -> Batch | None:
        """Return the results of those candidates that are pairs."""
        chunks = [
            self._selected(pairs if self._state.is_exact else self._close_ones(pairs))
            for pairs in _in_few_parts(candidates)
        ]
        chunks = [pairs for pairs in chunks if len(pairs[_LEFT])]
        if not chunks:
            return None
        pairs = _as_one(chunks)
        return self._results(
            take_pairs(pairs, order_of_pairs(pairs, first, self._state.rows.start))
        )

    def _admitted(self, batch: Batch, side: int) -> Batch | None:
        """Return the rows that may find a partner; None if there are none."""
        rows = len(batch)
        if not rows:
            return None
        # All replicas that share the rows number alike those that pass this test.
        is_shared = self._replica is not None
        horizon_ns = self._horizon_ns(self._passed_ns) if is_shared else self._gone_ns(side)
        # Where each replica sees all rows the first one reports for all.
        if self._step.keeps_late and (self._replica is None or self._replica.index == 0):
            gone_ns, (back_ns, _) = self._gone_ns(1 - side), self._step.reaches_ns[side]
            self._missed.add(
                partly_late(batch, side, gone_ns, dropped_ns=horizon_ns, within_ns=back_ns)
            )
        if batch.event_time_ns.item(0) < horizon_ns:
            batch = batch.keep(batch.event_time_ns >= horizon_ns)
            self._missed.dropped += rows - len(batch)
        nulls = any_null([batch.columns[name] for name in self._on[side]])
        if nulls is not None:
            if self._unmatched is not None and side in self._unmatched.sides:
                equal_nothing = batch.keep(nulls)
                codes = self._codes(equal_nothing, side)
                self._unmatched.hold_null_keys(equal_nothing, side, codes)
            batch = batch.keep(~nulls)
        if self._unmatched is not None:
            self._unmatched.count_late(batch, side)
        return batch if len(batch) else None

    def _gone_ns(self, side: int) -> int:
        """Return the time before which no row of a side finds a partner."""
        if self._unmatched is not None and side in self._unmatched.sides:
            return max(self._unmatched.gone_ns, self._state.horizon_ns)
        return self._state.horizon_ns

    def _codes(self, batch: Batch | None, side: int) -> Int64Array:
        if batch is None:
            return _NONE
        return self._keys.codes([batch.columns[name] for name in self._on[side]], len(batch))

    def _candidates(self, new: Arrivals) -> Iterator[Pairs]:
        """Take the new rows in; yield all pairs with a new row, each once.

        The side with fewer new rows searches all of the other one. Its old rows are matched with
        the other's new rows, whichever of the two are fewer.
        """
        state = self._state
        first = state.rows.end
        large = _LEFT if 2 * new.lefts > len(new.keys) else _RIGHT
        small = 1 - large
        searches, held = new.count(small), state.held(small)
        near = state.reach(new, large) if held else 0
        is_turned = near > 4 * held
        state.make_fit(new, keys=2 * len(self._keys))
        state.append(new)
        if not searches and not near:
            return
        state.settle(*((_LEFT, _RIGHT) if searches or is_turned else (small,)))
        searching, keys, times = new.searches(small, searches, first)
        if is_turned:
            older = state.held_rows(small, first)
            searching = np.concatenate([older, searching])
            keys = np.concatenate([state.rows.keys_at(older), keys])
            times = np.concatenate([state.rows.event_time_ns(older), times])
            since_ns = new.times_of(large).item(0)  # few old rows are as new as this
            found = state.partners(searching, keys, times, older=len(older), since_ns=since_ns)
            for own, partners in found:
                yield sided(*_with_new(own, partners, first), small)
            return
        for own, partners in state.partners(searching, keys, times):
            yield sided(own, partners, small)
        for own, partners in state.partners(*new.searches(large, near, first)):
            kept = (partners < first).nonzero()[0]  # new ones have found them already
            yield sided(own.take(kept), partners.take(kept), large)

    def _selected(self, pairs: Pairs) -> Pairs:
        """Return those pairs for which the predicate holds."""
        self.comparisons += len(pairs[_LEFT])
        if self._step.where is None or not len(pairs[_LEFT]):
            return pairs
        # No expression sees stimulus times, and few see event times: others stand in for them.
        times = self._state.rows.later(pairs)[0] if self._where_reads_time else pairs[_LEFT]
        batch = Batch(
            event_time_ns=times,
            stimulus_time_ns=times,
            columns=self._columns(self._where_columns, pairs),
        )
        mask = holds(self._step.where, batch, step=self._step.name)
        return take_pairs(pairs, mask.nonzero()[0])

    def _close_ones(self, pairs: Pairs) -> Pairs:
        """Return those pairs that are held and not more than `within_ns` apart."""
        rows = self._state.rows
        pairs = take_pairs(pairs, (np.minimum(*pairs) >= rows.start).nonzero()[0])
        left, right = rows.event_time_ns(pairs[_LEFT]), rows.event_time_ns(pairs[_RIGHT])
        before_ns, after_ns = self._step.reaches_ns[_LEFT]
        is_close = (left - right <= before_ns) & (right - left <= after_ns)
        is_close &= np.minimum(left, right) >= self._state.horizon_ns
        return take_pairs(pairs, is_close.nonzero()[0])

    # -- pairs out ----------------------------------------------------------------------

    def _results(self, pairs: Pairs) -> Batch | None:
        """Return the results of pairs that leave now; None if none does."""
        unmatched = self._unmatched
        if unmatched is not None:
            pairs = unmatched.paired(pairs)
        elif self._step.how == "semi":
            pairs = self._first_matches(pairs)
        if self._step.how == "anti" or not len(pairs[_LEFT]):
            return None
        results = self._of_pairs(pairs)
        if unmatched is None:
            return results
        unmatched.wait(results, pairs)
        return None

    def _first_matches(self, pairs: Pairs) -> Pairs:
        """Return the first pair of each left row that has had none."""
        rows = self._state.rows
        _, first = np.unique(pairs[_LEFT], return_index=True)
        first.sort()
        pairs = take_pairs(pairs, first)
        pairs = take_pairs(pairs, (~rows.are_matched(pairs[_LEFT])).nonzero()[0])
        rows.match(pairs[_LEFT])
        return pairs

    def _of_pairs(self, pairs: Pairs) -> Batch:
        event_time_ns, stimulus_time_ns = self._state.rows.later(pairs)
        if (side := self._step.result_time) is not None:
            event_time_ns = self._state.rows.event_time_ns(
                pairs[_LEFT if side == "left" else _RIGHT]
            )
        columns, marks = self._columns(self._names, pairs), self._state.rows.marks(pairs)
        return Batch(
            event_time_ns=event_time_ns,
            stimulus_time_ns=stimulus_time_ns,
            columns=columns,
            marks=marks,
        )

    def _columns(self, names: Names, pairs: Pairs) -> Columns:
        columns: Columns = {}
        for side in (_LEFT, _RIGHT):
            if names[side]:
                held = self._state.rows.columns(names[side].values(), pairs[side], side=side)
                columns.update(zip(names[side], held, strict=True))
        return columns

    # -- state --------------------------------------------------------------------------

    def _forget_keys(self) -> None:
        if self._keys.is_worth_keeping(self.rows_held):
            waiting = [] if self._unmatched is None else self._unmatched.codes()
            keep_keys(self, np.concatenate([self._state.codes(), *waiting]))


def _of_sides(leaving: Iterable[str], renamed: Mapping[str, str]) -> Names:
    """Return the columns of each side; `renamed` is {name a right one leaves under: column}."""
    names = list(leaving)
    return (
        {name: name for name in names if name not in renamed},
        {name: renamed[name] for name in names if name in renamed},
    )


def _in_few_parts(candidates: Iterator[Pairs]) -> Iterator[Pairs]:
    """Yield small parts together: a predicate costs some 0.1 ms however few its rows are."""
    parts: list[Pairs] = []
    for pairs in candidates:
        parts.append(pairs)
        if sum([len(lefts) for lefts, _ in parts]) >= _MANY_PAIRS:
            yield _as_one(parts)
            parts = []
    if parts:
        yield _as_one(parts)


def _as_one(parts: list[Pairs]) -> Pairs:
    """Return the pairs of all parts, at least one."""
    if len(parts) == 1:
        return parts[0]
    lefts, rights = zip(*parts, strict=True)
    return np.concatenate(lefts), np.concatenate(rights)


def _with_new(own: Int64Array, partners: Int64Array, first: int) -> Pairs:
    """Return those pairs of which a row is at `first` or later."""
    kept = (np.maximum(own, partners) >= first).nonzero()[0]
    return (own, partners) if len(kept) == len(own) else (own.take(kept), partners.take(kept))


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

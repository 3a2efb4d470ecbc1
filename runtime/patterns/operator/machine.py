"""Sequences of events: rows in the order of the stream, matches out.

```
rows ──▶ which events each is ──▶ those of each key to its matcher ──▶ what leaves, as rows
         (fits.py, whole batches)  (runtime/patterns)                  (leaving.py)
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slackwater.runtime.config import Limits
from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    BoolArray,
    Columns,
    GateRead,
    Int64Array,
)
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.arrays import ChangingArray
from slackwater.runtime.operators.ground.contract import Operator, PlainOperator, Result
from slackwater.runtime.operators.ground.keep import most_text
from slackwater.runtime.operators.ground.keys import KeyIndex, any_null
from slackwater.runtime.operators.ground.late_rows import Missed
from slackwater.runtime.operators.ground.user_code import holds
from slackwater.runtime.patterns.operator.fits import Fits
from slackwater.runtime.patterns.operator.leaving import Leaving
from slackwater.runtime.patterns.operator.matchers import Events, Matchers
from slackwater.runtime.patterns.operator.rows import Part, Rows
from slackwater.runtime.patterns.operator.step import PatternStep
from slackwater.runtime.patterns.scopes import CountWindows, OpenedWindows
from slackwater.runtime.patterns.settings import Found, Limit, TooManyMatches, Worked

_MANY_KEYS = 1024
_MANY_ROWS = 65_536


def pattern_machine(step: PatternStep, *, most_kept_rows: int = Limits.most_kept_rows) -> Operator:
    """Return the machine of a `PatternStep`, with or without `shed`."""
    if step.shed is None:
        return PatternMachine(step, most_kept_rows=most_kept_rows)
    return step.shed.machine(step, most_kept_rows=most_kept_rows)


@dataclass(frozen=True)
class Inside:
    """Seams of a `PatternMachine` for an operator round it.

    Attributes:
        matchers: makes its matchers.
        carried: columns that this operator adds to rows, and that they keep.
        counts_all: whether each row is numbered among its key's, whatever it fits.
        worked: counts the work of windows; None if it is not counted.
    """

    matchers: Callable[..., Matchers] = Matchers
    carried: tuple[str, ...] = ()
    counts_all: bool = False
    worked: Worked | None = None


class PatternMachine(PlainOperator):
    """The machine of a `PatternStep`, without what it sheds.

    A late row is not looked at: it is counted in `late_dropped`. Rows with a null key are in no
    match. The stimulus time of a match is the latest of its events', and, if it waited for the end
    of its scope, of what moved the watermark there.

    Costs: rows that fit nothing some nanoseconds each, unless scopes count events: then these are
    counted for each key. Keys without rows are not looked at.

    Args:
        step: the pattern and its settings.
        most_kept_rows: rows held for matches to come, at most; and rows in the matches of one
            read.
        inside: hooks of an operator round it, which calls what `work` calls.

    Attributes:
        settings: the settings of all keys.
        conditions: predicates that read earlier events.
        fits: finder of the events of the pattern that each row fits.
        matchers: the matchers of the keys.
        rows: the rows of matches to come.
        passed_ns: nothing older follows.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("rows", of="_keys"),
        Field("matchers", by="_keys"),
        "_most_keys",
        "_most_rows",
        "_looks_at",
        Field("_numbers", by="_keys"),
        "_turn",
        "passed_ns",
        "_missed",
    )

    def __init__(
        self, step: PatternStep, *, most_kept_rows: int, inside: Inside | None = None
    ) -> None:
        self._step, self._inside = step, inside or Inside()
        self._most_kept_rows = most_kept_rows
        self._limit = Limit(most_kept_rows)
        self.settings = replace(
            step.compiled(),
            many=self._hold_many,
            limit=self._limit,
            worked=self._inside.worked,
        )
        self._every = step.scope.every if isinstance(step.scope, CountWindows) else 0
        self._opens = step.scope.asked if isinstance(step.scope, OpenedWindows) else -1
        self._counts_all = step.counts_events or self._inside.counts_all
        self._start()

    def _hold_many(self, asked: int, turn: int, name: str, turns: list[int]) -> list[bool] | None:
        return self.conditions.hold_many(asked, turn, name, turns)

    def _start(self) -> None:
        step = self._step
        self.fits = Fits(step.pattern.asked, type_column=step.type_column, step=step.name)
        self.rows = Rows()
        self._leaving = Leaving(step, self.rows, carried=self._inside.carried)
        self.conditions = Conditions(step, self.rows)
        self._keys = KeyIndex(len(step.keys))
        self.matchers = self._inside.matchers(
            self.settings, self.conditions.hold, names=step.distinct, is_one=not step.keys
        )
        self._most_keys = _MANY_KEYS  # when there are more, finished keys are looked for
        self._most_rows = _MANY_ROWS  # when there are more rows, finished ones are looked for
        self._looks_at = self._most_kept_rows  # when there are more rows, they are checked
        self._numbers = EventNumbers()
        self._turn = 1  # the place in the stream of the next row that fits something
        self.passed_ns = START_NS
        self._missed = Missed(keeps=step.keeps_late)

    def work(self, released: GateRead, now_ns: int) -> Result:
        """Take rows; return the matches that they complete, or that are decided now.

        Raises:
            OperatorError: more rows are needed than may be kept, or these make too many matches.
        """
        del now_ns
        with self.limited():
            came = self.admitted(released)
            matches = [] if came is None else self._matched(came)
            matches += self.pass_time(released.watermark_ns)
        result = self.result(matches, released)
        if (codes := self.forget()) is not None:
            keep_keys(self, codes)
        self.check_size()
        return result

    def counts(self) -> dict[str, Any]:
        """Return counts of what waits."""
        return {} if self._step.leaves_with_rows else {"waiting": self.waiting}

    @property
    def late_dropped(self) -> int:  # noqa: D102 - see Operator
        return self._missed.dropped

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return len(self.rows)

    @property
    def waiting(self) -> int:
        """Windows, or ends of matches, that wait until nothing can forbid them any more."""
        return self.matchers.waiting

    # -- what `work` calls, and an operator round it ------------------------------------

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Bound the matches of a read.

        Raises:
            OperatorError: it makes too many.
        """
        self._limit.begin()
        try:
            yield
        except TooManyMatches:
            raise too_many_matches(self._step, self._most_kept_rows) from None

    def admitted(self, released: GateRead) -> Batch | None:
        """Return the rows of a read that are in time; None if none is."""
        return self._missed.in_time(released, self.passed_ns)

    def with_keys(self, batch: Batch) -> Batch | None:
        """Return the rows whose keys are not null; None if none is left."""
        nulls = any_null([batch.columns[name] for name in self._step.keys])
        if nulls is not None:
            batch = batch.keep(~nulls)
        return batch if len(batch) else None

    def numbered(self, batch: Batch) -> tuple[Int64Array, Int64Array]:
        """Return codes of rows' keys, and numbers of rows among their key's."""
        codes = self._keys.codes([batch.columns[name] for name in self._step.keys], len(batch))
        return codes, self._numbers.of(codes, len(self._keys))

    def with_openers(
        self, places: Int64Array, kinds: Int64Array, numbers: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Return rows that fit something, and those that open windows."""
        if not self._every:
            return places, kinds
        return with_openers(places, kinds, (numbers - 1) % self._every == 0)

    def _matched(self, came: Batch) -> list[Found]:
        """Take rows in order; return the matches that they complete."""
        if (batch := self.with_keys(came)) is None:
            return []
        places, kinds = self.fits.of(batch)
        codes = numbers = None
        if self._counts_all:
            codes, numbers = self.numbered(batch)
            places, kinds = self.with_openers(places, kinds, numbers)
            codes, numbers = codes.take(places), numbers.take(places)
        if not len(places):
            return []
        # A copy of the rows, as the batch may be overwritten.
        events = self.events_of(batch.take(places), places, kinds, codes, numbers)
        return self.matchers.take(events)

    def pass_time(self, watermark_ns: int) -> list[Found]:
        """Note that nothing older follows; return the matches that had waited for it."""
        self.passed_ns = max(self.passed_ns, watermark_ns)
        return self.matchers.decided(self.passed_ns)

    def result(self, matches: list[Found], released: GateRead) -> Result:
        """Return matches as rows, in order, and the late rows of the read."""
        matches.sort(key=lambda match: (match.time_ns, match.has_waited, match.turn, match.order))
        # The stimulus of a match is that of its last event, or of its end.
        rows = self._leaving.rows_of(matches, released.progress.stimulus_ns)
        return Result(rows, released.progress.promise_ns, *self._missed.take())

    def events_of(
        self,
        rows: Batch,
        places: Int64Array,
        kinds: Int64Array,
        codes: Int64Array | None,
        numbers: Int64Array | None,
    ) -> Events:
        """Return rows as events, which are remembered from now on."""
        turns = np.arange(self._turn, self._turn + len(rows))
        self._turn += len(rows)
        if numbers is None:
            numbers = turns
        if codes is None:
            codes = self._keys.codes([rows.columns[name] for name in self._step.keys], len(rows))
        self.rows.add(Part.of(codes, turns, self._leaving.kept(rows)))
        of_kind = self.fits.of_kind
        opens = None
        if self._opens >= 0:
            opens = np.array([self._opens in labels for labels in of_kind]).take(kinds)
        elif self._every:
            opens = (numbers - 1) % self._every == 0
        values = [rows.columns[name] for name in self._step.distinct]
        return Events(rows, places, codes, numbers, turns, kinds, of_kind, opens, values)

    # -- state --------------------------------------------------------------------------

    def forget(self, held: Callable[[], list[int]] = list) -> Int64Array | None:
        """Forget rows that are over as time passes; all, at the end.

        Args:
            held: returns the places in the stream of further rows that are not over.

        Returns:
            Codes of the keys to be kept, ascending; None if all are kept.
        """
        if self.passed_ns == END_NS:
            missed = self._missed
            self._start()
            self.passed_ns, self._missed = END_NS, missed
            return np.empty(0, dtype=np.int64)
        if self._step.counts_events:
            if len(self.rows) > self._most_rows:
                self._keep_rows(held())
            return None
        self.rows.forget_before(self.passed_ns - self._step.traits.reach_ns)
        keys = len(self._keys) if self._counts_all else len(self.matchers.of_key)
        if keys <= self._most_keys or not self._step.keys:
            return None
        kept = self.matchers.codes_since(self.passed_ns - self._step.traits.reach_ns)
        self._most_keys = max(2 * len(kept), _MANY_KEYS)
        return np.array(kept, dtype=np.int64)

    def check_size(self, held: Callable[[], list[int]] = list) -> None:
        """Check that no more events are held than may be; see `forget`.

        Raises:
            OperatorError: there are more.
        """
        if len(self.rows) <= self._looks_at:
            return
        self._keep_rows(held())
        # Not for each read: its time is proportional to all rows.
        more = len(self.rows) + self._most_kept_rows // 8
        self._looks_at = max(more, self._most_kept_rows)
        if len(self.rows) > self._most_kept_rows:
            raise too_many_rows(self._step, len(self.rows), self._most_kept_rows)

    def _keep_rows(self, held: list[int]) -> None:
        """Drop rows that no matcher has, or that are over for a silent key."""
        turns = sorted({*held, *(turn for own in self.matchers.turns_held() for turn in own)})
        # Only events end a scope of a number of events, so there no row is over as time passes.
        since_ns = (
            START_NS if self._step.counts_events else self.passed_ns - self._step.traits.reach_ns
        )
        self.rows.keep(np.array(turns, dtype=np.int64), since_ns=since_ns)
        self._most_rows = max(2 * len(turns), _MANY_ROWS)


def too_many_rows(step: PatternStep, rows: int, most: int) -> OperatorError:
    """Return the error for more rows than may be held for matches to come."""
    return OperatorError(
        f"step {step.name!r}: {rows:,} rows are held for matches to come, more than "
        f"{most_text(step, most)}: its windows or within= are long, or many are open; make them "
        "shorter, let `where=` leave less, or allow more with "
        "limits=sw.Limits(most_kept_rows=…)"
    )


def too_many_matches(step: PatternStep, most: int) -> OperatorError:
    """Return the error for too many rows in the matches of one read."""
    return OperatorError(
        f"step {step.name!r}: the matches that one read makes have more than "
        f"{most_text(step, most)} events between them, with selection={step.selection!r}; ask for "
        "fewer with selection='first', skip='next' or matches=, make windows shorter, let `where=` "
        "leave less, or allow more with limits=sw.Limits(most_kept_rows=…)"
    )


class EventNumbers:
    """EventNumbers counts the events of each key.

    Attributes:
        counts: shape (keys,), the number of events of each so far.
    """

    STATE = Fields(Field("counts", by=OWNER))

    def __init__(self) -> None:
        self.counts = ChangingArray(np.int64)

    def of(self, codes: Int64Array, keys: int) -> Int64Array:
        """Return the number of each row among those of its key, from 1 on.

        Args:
            codes: shape (rows,), of their keys.
            keys: all codes are below this, or 0.
        """
        self.counts.resize(max(keys, len(self.counts), 1))
        counts = self.counts.values
        if keys <= 1:
            begin = int(counts[0]) + 1
            self.counts.change(np.add, codes[:1], len(codes))
            return np.arange(begin, begin + len(codes))
        order = codes.argsort(kind="stable")
        ordered = codes.take(order)
        begins = np.flatnonzero(np.diff(ordered, prepend=-1))
        lengths = np.diff(begins, append=len(codes))
        numbers = np.empty(len(codes), dtype=np.int64)
        numbers[order] = np.arange(1, len(codes) + 1) - begins.repeat(lengths)
        numbers += counts.take(codes)
        self.counts.change(np.add, ordered.take(begins), lengths)
        return numbers


def with_openers(
    places: Int64Array, kinds: Int64Array, opens: BoolArray
) -> tuple[Int64Array, Int64Array]:
    """Return the rows that fit something, and those that windows open with.

    Args:
        places: places of the rows that fit an event.
        kinds: the kind of each of these; 0 fits nothing.
        opens: shape (rows,), whether a window opens with the row.
    """
    more = np.setdiff1d(np.flatnonzero(opens), places, assume_unique=True)
    if not len(more):
        return places, kinds
    both = np.concatenate([places, more])
    order = both.argsort(kind="stable")
    return both.take(order), np.concatenate([kinds, np.zeros(len(more), np.int64)]).take(order)


class Conditions:
    """Conditions evaluates these predicates.

    Each is computed as over a batch of one row, so that it means what it means everywhere, nulls
    and whole numbers that do not fit included.

    Args:
        step: the step whose predicates they are.
        rows: the rows of earlier events.
    """

    def __init__(self, step: PatternStep, rows: Rows) -> None:
        self._step = step
        self._rows = rows

    def hold(self, asked: int, turn: int, read: dict[str, int]) -> bool:
        """Return whether a predicate is true of an event and the earlier ones.

        Args:
            asked: the number of the pattern's event.
            turn: the event's place in the stream.
            read: {name of an earlier event: its place in the stream}.
        """
        predicate = self._predicate(asked)
        turns = np.array([turn, *read.values()], dtype=np.int64)
        rows = self._rows.at(turns)
        own = rows.slice(0, 1)
        columns: Columns = dict(own.columns)
        for place, name in enumerate(read, 1):
            event = rows.slice(place, place + 1)
            columns |= {f"{name}.{column}": value for column, value in event.columns.items()}
        batch = Batch(
            event_time_ns=own.event_time_ns, stimulus_time_ns=own.stimulus_time_ns, columns=columns
        )
        return bool(holds(predicate, batch, step=self._step.name)[0])

    def hold_many(self, asked: int, turn: int, name: str, turns: list[int]) -> list[bool] | None:
        """Return the answers for many earlier events of one name, computed together.

        None if one of them cannot be computed. That is an error only if that one is needed.
        """
        predicate = self._predicate(asked)
        own = self._rows.at(np.full(len(turns), turn, dtype=np.int64))
        rows = self._rows.at(np.array(turns, dtype=np.int64))
        wanted = predicate.columns()
        columns: Columns = {key: value for key, value in own.columns.items() if key in wanted}
        named = {f"{name}.{key}": value for key, value in rows.columns.items()}
        columns |= {key: value for key, value in named.items() if key in wanted}
        batch = Batch(
            event_time_ns=own.event_time_ns, stimulus_time_ns=own.stimulus_time_ns, columns=columns
        )
        try:
            truths: list[bool] = holds(predicate, batch, step=self._step.name).tolist()
        except OperatorError:
            return None
        return truths

    def _predicate(self, asked: int) -> Expr:
        predicate = self._step.pattern.asked[asked].also
        assert predicate is not None
        return predicate

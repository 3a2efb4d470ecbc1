"""A pattern that sheds events: an operator round the machine of the pattern.

```
rows in time ──▶ how long they waited ──▶ which of them go ──▶ the pattern ──▶ matches
                 (overload.py)            (window_shedding.py) (machine.py)       │
                                                ▲                                 │
                                                └──────── learns from these ◀─────┘
```
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import FlowError, SettingError, TypeMismatch
from slackwater.runtime.expressions.comparable import family
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.expressions.inside import reads_event_time
from slackwater.runtime.model import END_NS, Batch, GateRead
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import Operator, PlainOperator, Result
from slackwater.runtime.operators.ground.user_code import called
from slackwater.runtime.patterns.operator.machine import Inside, PatternMachine
from slackwater.runtime.patterns.operator.step import PatternStep
from slackwater.runtime.patterns.scopes import CountWindows
from slackwater.runtime.patterns.settings import Found, Worked
from slackwater.runtime.patterns.windowed import WindowMatcher
from slackwater.runtime.shedding.losses import Judged
from slackwater.runtime.shedding.settings import SheddingSettings
from slackwater.runtime.shedding.shedder import Shedder
from slackwater.runtime.shedding.wrapper.kept import Kept
from slackwater.runtime.shedding.wrapper.kinds import shown_columns
from slackwater.runtime.shedding.wrapper.shed_matchers import SheddingMatchers
from slackwater.runtime.shedding.wrapper.what_if import Parts, Trial, judged
from slackwater.runtime.shedding.wrapper.window_shedding import WindowShedding
from slackwater.runtime.shown import shown


@dataclass(frozen=True)
class EventShedding(SheddingSettings):
    """A value of `shed=` that drops events as its shedder says.

    A custom one is a frozen dataclass of this class, with `ranking` and `shedder`; see
    `benchmarks/espice/rivals.py`.
    """

    @property
    def columns(self) -> Set[str]:
        """Columns of rows that the feature reads."""
        return self.feature.columns() if isinstance(self.feature, Expr) else frozenset()

    def bound(self, schema: pa.Schema, *, step: str) -> Self:
        """Return it with its feature bound to the columns.

        Raises:
            TypeMismatch: the feature is not an expression, or of a type whose values hardly ever
                repeat.
            ColumnError: it reads a column that is not there.
            FlowError: it is the same for all rows.
            OperatorError: its `shedder` raises.
            SettingError: its `shedder` returns something else.
        """
        made = called(self.shedder, {}, step=step, shown=lambda: f"  shed={shown(self)}")
        if not isinstance(made, Shedder):
            raise SettingError(
                f"step {step!r}: shedder() of {shown(self)} must return a sw.shedding.Shedder, not "
                f"{shown(made)}"
            )
        return replace(self, feature=_checked_feature(self.feature, schema, step=step))

    def machine(self, step: PatternStep, *, most_kept_rows: int) -> Operator:
        """Return a fresh operator round that of a pattern."""
        return SheddingPattern(step, self, most_kept_rows=most_kept_rows)


def _checked_feature(feature: object | None, schema: pa.Schema, *, step: str) -> Expr | None:
    """Return a feature bound to the columns; None if the rule has none.

    Rows must have one of few different values of it.

    Raises:
        TypeMismatch: it is not an expression, or of a type whose values hardly ever repeat.
        ColumnError: it reads a column that is not there.
        FlowError: it is the same for all rows.
    """
    if feature is None:
        return None
    if not isinstance(feature, Expr):
        raise TypeMismatch(
            f"step {step!r}: feature={shown(feature)} is not an expression over a row's columns; "
            'write feature=sw.col("change") > 0, or sw.col("side")'
        )
    kind = feature.as_operand(schema, step=step).type
    if not (checks.is_whole(kind) or family(kind) in ("text", "bool")):
        raise TypeMismatch(
            f"step {step!r}: feature {feature!s} is {kind}, and events are told apart by few "
            "different values: text, whole numbers, or true and false; compare it, such as "
            "sw.col(…) > 0, or cast it, such as (sw.col(…) / 10).cast('int64')"
        )
    if not feature.columns() and not reads_event_time(feature):
        raise FlowError(
            f"step {step!r}: feature {feature!s} reads no column, so it tells no events apart; "
            'write one over a column, such as sw.col("change") > 0, or omit feature='
        )
    return feature.bound(schema)


class SheddingPattern(PlainOperator):
    """The machine of a `PatternStep` that sheds.

    It drops events while they wait too long, and tells the pattern which windows have lost what.

    Args:
        step: step of the pattern.
        shed: the settings of shedding.
        most_kept_rows: bound on rows, as of PatternMachine.
    """

    STATE = Fields(Field("_pattern", by=OWNER), "_events", Field("_shedding", by=OWNER))

    def __init__(self, step: PatternStep, shed: SheddingSettings, *, most_kept_rows: int) -> None:
        self._step, self._columns = step, shown_columns(shed)
        self._worked = Worked()
        self._pattern = PatternMachine(
            step,
            most_kept_rows=most_kept_rows,
            inside=Inside(
                partial(SheddingMatchers, learns=shed.ranks),
                carried=self._columns,
                counts_all=True,  # positions in windows are made of these numbers
                worked=self._worked,
            ),
        )
        self._judging = replace(self._pattern.settings, worked=None)
        self._shedding = WindowShedding(step, shed, self._judging, self._windowed)
        self._touched: set[int] = set()  # keys of this read
        self._events = 0  # events so far

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        pattern, shedding = self._pattern, self._shedding
        kept, passed = shedding.kept, shedding.passed_over
        with pattern.limited():
            came = pattern.admitted(released)
            matches = [] if came is None else self._found_in(came, now_ns)
            matches += pattern.pass_time(released.watermark_ns)
            self._learn()
        result = pattern.result(matches, released)
        if (codes := pattern.forget(shedding.turns_tried)) is not None:
            keep_keys(self, codes)
        if pattern.passed_ns == END_NS:
            self._events = 0
        pattern.check_size(shedding.turns_tried)
        return result._replace(
            compared=shedding.kept - kept, passed_over=shedding.passed_over - passed
        )

    def counts(self) -> dict[str, Any]:
        """Return counts of shed rows and of work, and those of the pattern."""
        shedding = self._shedding
        own = {"shed": shedding.shed, "comparisons": shedding.kept, "shedding": shedding.counts}
        return {**self._pattern.counts(), **own}

    def charge(self, took_ns: int, idle_ns: int) -> None:  # noqa: D102 - see Operator
        self._shedding.took(took_ns, idle_ns)

    def reckon_with(self, rest_ns: int) -> None:  # noqa: D102 - see Operator
        self._shedding.reckon_with(rest_ns)

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return self._pattern.rows_held

    @property
    def late_dropped(self) -> int:  # noqa: D102 - see Operator
        return self._pattern.late_dropped

    @property
    def _matchers(self) -> SheddingMatchers:
        matchers = self._pattern.matchers
        assert isinstance(matchers, SheddingMatchers)
        return matchers

    def _windowed(self, code: int) -> WindowMatcher | None:
        return self._matchers.windowed(code)

    # -- rows in, matches out -----------------------------------------------------------

    def _found_in(self, came: Batch, now_ns: int) -> list[Found]:
        self._shedding.look(came, now_ns)
        if (batch := self._pattern.with_keys(came)) is None:
            return []
        return self._pass_over(batch) if self._shedding.is_passing_over else self._matched(batch)

    def _matched(self, batch: Batch) -> list[Found]:
        """Take rows, less those that are dropped; return the matches that they complete."""
        pattern, shedding = self._pattern, self._shedding
        places, kinds = pattern.fits.of(batch)
        codes, numbers = pattern.numbered(batch)
        if shedding.is_in_gap and not shedding.is_passing_over:
            self._matchers.give_up(shedding.end_gap())
        kept: Kept | None = None
        if not shedding.leaves_alone(self._events, batch.event_time_ns):
            events = np.arange(self._events, self._events + len(batch))
            of_kind = pattern.fits.of_kind
            kept = shedding.dropped(batch, codes, numbers, events, places, kinds, of_kind)
            self._touched |= set(np.unique(codes).tolist())
            chosen = kept.left(places)
            places, kinds = places[chosen], kinds[chosen]
        self._events += len(batch)
        places, kinds = pattern.with_openers(places, kinds, numbers)
        matches: list[Found] = []
        if len(places):
            rows, codes, numbers = batch.take(places), codes.take(places), numbers.take(places)
            if kept is not None and self._columns:
                known = [numbers, *kept.known.take(places, axis=1)]
                shown = dict(zip(self._columns, known, strict=True))
                rows = Batch.like(rows, {**rows.columns, **shown})
            left = pattern.events_of(rows, places, kinds, codes, numbers)
            matches = self._matchers.take_kept(left, kept)
        if kept is not None:
            shedding.settle(kept)
        shedding.worked(self._worked.events)
        self._worked.events = 0
        return matches

    def _pass_over(self, batch: Batch) -> list[Found]:
        """Count rows and do no more, unless a tried window has them."""
        times, matches = batch.event_time_ns, list[Found]()
        if not self._shedding.is_in_gap:
            self._shedding.begin_gap(times.item(0), self._judge)
            matches = self._matchers.give_up(times.item(0))
        if not self._shedding.pass_over(self._events, times):
            return matches + self._matched(batch)
        if isinstance(self._step.scope, CountWindows):  # windows open by the numbers of events
            self._pattern.numbered(batch)
        self._events += len(batch)
        return matches

    def _learn(self) -> None:
        """Tell the shedder which events were in matches, and which windows are over."""
        hits, self._matchers.hits = self._matchers.hits, []
        if hits:
            self._touched |= self._shedding.hit(hits, self._pattern.rows)
        self._shedding.finish(sorted(self._touched), self._pattern.passed_ns, self._judge)
        self._touched = set()

    def _judge(self, trial: Trial) -> tuple[Judged, list[Parts]]:
        return judged(trial, self._judging, self._pattern.conditions.hold)

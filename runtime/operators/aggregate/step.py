"""`aggregate`: its step, and the method that makes it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from itertools import starmap
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.closing.policy import Closing
from slackwater.runtime.errors import SettingError, TypeMismatch
from slackwater.runtime.model import Duration, Release, ReleaseRule, duration_ns, format_ns
from slackwater.runtime.operators.aggregate.close import (
    CloseInTime,
    close_of,
    no_slack,
    refuse_drift,
)
from slackwater.runtime.operators.aggregate.custom_aggregate import CustomAggregate
from slackwater.runtime.operators.aggregate.interval_words import (
    MOST_ROWS,
    Intervals,
    OpenedBy,
    Rows,
)
from slackwater.runtime.operators.aggregate.partial_aggregates import (
    partial_aggregates,
    why_no_parts,
)
from slackwater.runtime.operators.aggregate.schema import (
    EarlyCounts,
    Late,
    ResultTime,
    aggregated_schema,
    bound,
    revised,
    with_chance,
    with_three,
)
from slackwater.runtime.operators.aggregate.totals_step import OnMissing, totals_step
from slackwater.runtime.operators.aggregate.window_step import IntervalStep, WindowStep
from slackwater.runtime.operators.aggregate.written import Aggregate, Combine, Window
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.drift import DriftGiven, checked_drift
from slackwater.runtime.operators.ground.keep import silent_text
from slackwater.runtime.operators.ground.streams import AnyStream, Names, names_of
from slackwater.runtime.plan.changes import carried_by
from slackwater.runtime.plan.event_time_type import event_time_type
from slackwater.runtime.plan.partial_results import partial_results, why_rows_are_sent
from slackwater.runtime.plan.promises import PASSES, Summary
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.step import EachRowStep, PartialResults, Step
from slackwater.runtime.plan.traits import Replicas, StepTraits, each_row
from slackwater.runtime.shown import shown


@dataclass(frozen=True, kw_only=True)
class AggregateStep(WindowStep):
    """Windows are numbered: which a row is in follows from its time alone.

    The event time of a result is the last moment in the window, end − 1 ns, or, with drift, in the
    last of the three windows: the bound later. Rows leave by window end, then by key in order of
    first appearance in the window's stream order.
    """

    window: Window
    empty_ns: int = 0
    """Time after a key's last window with rows for which windows without rows leave, too."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return replace(
            self._traits(kind="aggregate"),
            changes="revisions" if self.late == "correct" or self.leaves_again else "none",
            reach_ns=self.window.size_ns + 2 * self._wait_ns,
            makes="windows",
            windows_ns=(self.window.size_ns, self.window.slide_ns),
            keep_rule="promise" if self.late == "correct" else None,
            is_light=self._is_light,
            uses_clock=self.close is not None and self.close.by_clock,
            close=self.close,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        types = set() if self.close is None or self.close.type is None else {self.close.type}
        of_drift = self.drift.columns if self.drift else set()
        return super().reads(position, there, needed) | types | of_drift

    @property
    def _summary(self) -> Summary:
        if self.leaves_early:
            return PASSES
        if self.result_time is None:
            # The last moment in the earliest window still open; with drift in the high one.
            return Summary(self.window.slide_ns, self.window.end_ns(0) + self._wait_ns - 1)
        # The first moment in that window.
        size_ns = self.window.size_ns
        return Summary(self.window.slide_ns, self.window.start_ns(0), delay_ns=size_ns - 1)

    @property
    def _is_light(self) -> bool:
        """Whether a row is added to one cell, and the cell is a few numbers."""
        is_few = all(each.kind in _FEW_NUMBERS for each in self.aggregates.values())
        is_once = self.late == "drop" and self.drift is None and not self.leaves_early
        return self.window.is_tumbling and is_once and is_few

    @property
    def _wait_ns(self) -> int:
        return self.drift.most_ns if self.drift else 0

    def beside_source(self, schema: pa.Schema, name: str) -> PartialResults | None:  # noqa: D102 - see GatedStep
        if self.late != "drop" or self.drift is not None or self.close is not None:
            return None
        # A count of no partial results is null, and these have no time of a row.
        if self.empty_ns or self.leaves_early or self.result_time in ("first", "last"):
            return None
        if why_no_parts(self.aggregates, schema):
            return None
        parts = partial_aggregates(self.keys, self.aggregates, schema)
        if parts.rounded and self.combine == "exact":
            return None
        fields = [*map(self.schema.field, self.keys), *starmap(pa.field, parts.types.items())]
        beside = CombineStep(
            name=name,
            inputs=self.inputs,
            schema=pa.schema(fields),
            of=self,
            aggregates=parts.of_rows,
        )
        of_parts = replace(self, inputs=(name,), aggregates=parts.of_parts)
        return PartialResults(beside, of_parts, parts.rounded)

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        # Not where windows close in time: when they do follows from the rows of all keys.
        return super().names_before(column) if self.close is None else (None,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield from super().explained(steps)
        if self.empty_ns:
            yield f"empty    windows leave, too, for {format_ns(self.empty_ns)} after a key's rows"
        if self.drift:
            yield f"drift    {self.drift.text}: of the window as it is, and moved either way"
        if self.late == "correct":
            yield "late     corrects: its window's row leaves again, with the next revision"
            yield f"keeps    {_panes_text(self, steps)}"
        if self.close is not None:
            yield from _close_text(self, self.close)
        if self.combine == "anywhere":
            yield f"combine  {_combine_text(self, steps)}"


@dataclass(frozen=True, kw_only=True)
class CombineStep(EachRowStep):
    """Partial results of a batch, made by the plan alone.

    Columns that leave: the keys, then one for each aggregate. The event time of a partial result is
    the last moment of its pane, so that it waits at the gate no longer than the pane's window.
    """

    of: AggregateStep
    aggregates: Mapping[str, Aggregate]
    """{column of a partial result: aggregate of rows}."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return replace(each_row("combine"), combines=True)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return self.of.reads(position, there, needed)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield nothing: users do not write this step."""
        yield from ()


def _close_text(step: AggregateStep, close: CloseInTime) -> Iterator[str]:
    """Yield when windows close, and what that depends on."""
    yield f"closes   {close.policy.text}"
    if close.type is not None:
        yield f"         a type of rows for each {close.type}"
    if close.by_clock:
        yield (
            f"         by the clock of its slot, for {', '.join(close.untold)} tell no arrival: "
            "results depend on when rows come"
        )
    replicas = step.traits.sharing.replicas
    if replicas > 1:
        part = f"1/{replicas} of the budget"
        yield f"         each replica by the rows of its own keys, with {part}"


def _combine_text(step: AggregateStep, steps: Mapping[str, Step]) -> str:
    """Return where partial results are made, and what that changes."""
    if why_not := why_rows_are_sent(step, steps):
        return f"anywhere, but rows are sent: {why_not}"
    made = partial_results(step, steps)
    rounded = made.rounded if made is not None else ()
    if not rounded:
        return "anywhere; all results are exact"
    return (
        f"anywhere: last bits of {', '.join(rounded)} depend on replicas= and on how rows are read"
    )


def _panes_text(step: AggregateStep, steps: Mapping[str, Step]) -> str:
    silent = silent_text(steps, step.inputs)
    text = "windows until all have promised their ends"
    return f"{text}; {silent}: of as many rows as most_kept_rows" if silent else text


_MOST_EMPTY = 100_000
"""Windows without rows in a row, of a key."""
_FEW_NUMBERS = frozenset({"count", "sum", "mean", "min", "max", "std", "var", "any", "all"})
"""Aggregates of which a cell has a few numbers."""
_RUNTIME = str(Path(__file__).parents[2])
"""Folder of the runtime: a warning names the first line outside."""


class Aggregating(AnyStream):
    """Streams can be aggregated."""

    @checked_call
    def aggregate(  # noqa: PLR0913 - each option is one word of what an aggregate means
        self,
        /,
        columns: Mapping[str, Aggregate] | None = None,
        *,
        window: Window | Intervals | None = None,
        by: Names = (),
        empty: Duration | None = None,
        early: str | timedelta | int | None = None,
        early_counts: EarlyCounts = "all",
        slack: Slack = AS_FLOW,
        late: Late = "drop",
        close: Closing | None = None,
        drift: DriftGiven = None,
        replicas: Replicas = None,
        combine: Combine = "exact",
        every: Duration | None = None,
        keep: Duration | None = None,
        on_missing: OnMissing = "error",
        time: ResultTime = "end",
        name: str | None = None,
        **named: Aggregate,
    ) -> Self:
        """Aggregate each key's rows in each window of event time, or all rows so far.

        Args:
            columns: {column: aggregate}, for names that Python cannot spell.
            window: tumbling("1s"), sliding("10s", "2s") or calendar("day", zone="Europe/Warsaw"),
                which all keys share; or of each key its own: session("30m"), rows(100),
                opened_by(col("speed") > 80, "15s"), everything(). Without it the result of a key is
                of all rows so far, and changes with each: an insert, then updates; a deletion
                once all its rows are taken back.
            by: the key columns; none: all rows together.
            empty: how long windows without rows leave, too, for each key: "1h" after the end of its
                last window with rows. Counts are 0 and other aggregates null. Then the key is
                forgotten until it has a row again. Without it they leave nothing. For numbered
                windows; not with late="correct", close=, drift= or combine="anywhere".
            early: when results leave before their windows end, too: "10s", each ten seconds of
                event time in which a window has rows; or 100, with each hundredth row of a window
                and key, if windows stand side by side. Windows that all keys share leave as
                revisions, with a column `revision`, 0 the first time; no aggregate or join can
                follow. Windows of a key's own leave as changes: an insert, then updates, and a
                deletion where a late row makes one session of two. Without empty=, time=,
                late="correct", close=, drift= and combine="anywhere".
            early_counts: rows in a result, with early=. "all": of the window so far. "new": those
                since its result before, so that each row counts once. Then each result is an
                insert, and a window without new rows leaves nothing at its end. For windows side
                by side, sessions and everything().
            slack: how long its gate waits; AS_FLOW: as the flow says.
            late: fate of a row that comes after its window has closed. "drop": the row is counted
                as late. "correct": the result of the window leaves again, with a column `revision`
                (0 the first time), as long as a source may still send such a row; no aggregate or
                join can follow.
            close: when windows close: probslack(miss=0.1), event_driven(), mean_delay() or
                ignore(), by the arrivals of rows. Rows then leave the gate as they come, and each
                result has the chance that its window missed some, as `chance_missing`.
                None: when the gate has released all rows of the window.
            drift: how far an event's time may be off, either way: "5ms", or the name of a column
                with each event's own bound in whole nanoseconds (see `clock_bound`). Each aggregate
                x is then taken over three windows, the one as it is and those moved either way by
                the bound. x is that of the middle one, x_mean the mean of the three, x_low and
                x_high the least and the greatest. A result leaves later by the bound, for each
                window of which one of the three had events. x is null if the middle one
                had none. At most half of the window. Source: [thesis] §3.2.3.1.
            replicas: the number of replicas, each with the rows of its keys; see `join`.
            combine: where replicas may get partial results, made beside a source that feeds the
                step. "exact": only where no bit of a result changes, as of counts and whole
                numbers. "anywhere": of floats too. The last bits of their sums and means then
                depend on replicas= and on how rows are read, so no sink can resume after the step.
                For counts, sums, means, minima and maxima alone, without where=; not with
                late="correct", close= or drift=.
            every: length of parts of event time, "1s", in each of which a result without window
                changes once at most, at its end; by default with each row.
            keep: length of event time, "30d", that a key stays at least after its newest row,
                without window. Then its result is deleted, at the last moment before a multiple of
                that length, and counted as `forgotten_keys`, once the input has reached that.
            on_missing: fate of a row that takes back one which was never there, without window.
                "error": the job ends. "count": it is counted, and changes nothing.
            time: event time of results. "end": the last moment of the window. "start": its first
                moment; "first", "last": that of its earliest or latest row. Then older windows that
                are still open hold results back, and with them what the step promises; not with
                late="correct", close= or drift=.
            name: the name of the step.
            named: column=aggregate, such as n=count().
        """
        name = self._step_name("aggregate", name)
        keys = names_of(by)
        aggregates = checks.together(columns, named, step=name)
        gate = self._gate(slack, replicas, keys, step=name)
        if window is None:
            _refuse_numbered(
                None,
                step=name,
                late=late,
                close=close,
                drift=drift,
                combine=combine,
                empty=empty,
                early=early,
                early_counts=early_counts,
            )
            _refuse_time(time, step=name)
            return self._add(
                totals_step(
                    self.schema,
                    keys,
                    aggregates,
                    every=every,
                    keep=keep,
                    on_missing=on_missing,
                    retracts=carried_by(self.flow.steps, self.name).changes == "retractions",
                    name=name,
                    inputs=self._in,
                    **gate,
                )
            )
        _check_window(window, step=name)
        _refuse_totals(every, keep, on_missing, step=name)
        of_time = event_time_type(self.flow.steps, self._in)
        schema = aggregated_schema(self.schema, keys, aggregates, time=of_time, step=name)
        result_time = _result_time(time, step=name, late=late, close=close, drift=drift)
        custom = {
            column: each.functions
            for column, each in aggregates.items()
            if isinstance(each, CustomAggregate) and each.functions is not None
        }
        aggregates = bound(aggregates, self.schema, step=name)
        if isinstance(window, Intervals):
            _refuse_numbered(
                window,
                step=name,
                late=late,
                close=close,
                drift=drift,
                combine=combine,
                empty=empty,
            )
            early_ns, early_rows = _early(early, early_counts, window, step=name, time=result_time)
            return self._add(
                IntervalStep(
                    name=name,
                    inputs=self._in,
                    schema=schema,
                    keys=keys,
                    window=window.bound(self.schema, step=name),
                    aggregates=aggregates,
                    custom=custom or None,
                    early_ns=early_ns,
                    early_rows=early_rows,
                    discards=early_counts == "new",
                    result_time=result_time,
                    **gate,
                )
            )
        allowed = checked_drift(
            drift, [self.schema], span_ns=window.size_ns, span="window=", step=name
        )
        schema = with_three(schema, aggregates, allowed, step=name)
        _check_combine(
            combine, aggregates, self.schema, step=name, late=late, close=close, drift=drift
        )
        if empty is not None and result_time in ("first", "last"):
            raise SettingError(
                f"step {name!r}: time={time!r} is that of a row, and empty= gives windows without "
                "rows; write time='start', or omit one of the two"
            )
        empty_ns = _empty_ns(
            empty, window, step=name, late=late, close=close, drift=drift, combine=combine
        )
        early_ns, early_rows = _early(
            early,
            early_counts,
            window,
            step=name,
            empty=empty,
            time=result_time,
            late=late,
            close=close,
            drift=drift,
            combine=combine,
        )
        closes = None
        if close is not None:
            closes = close_of(close, self.flow.steps, self._in, window, self.schema, step=name)
            refuse_drift(allowed, step=name)
            gate["release"] = no_slack(slack, step=name)
            schema = with_chance(schema, step=name)
            _say_slack(self.flow.release, step=name)
        return self._add(
            AggregateStep(
                name=name,
                inputs=self._in,
                schema=revised(
                    schema,
                    late,
                    is_early=early is not None and early_counts == "all",
                    step=name,
                ),
                keys=keys,
                window=window,
                aggregates=aggregates,
                empty_ns=empty_ns,
                early_ns=early_ns,
                early_rows=early_rows,
                discards=early_counts == "new",
                late=late,
                close=closes,
                drift=allowed,
                combine=combine,
                custom=custom or None,
                result_time=result_time,
                **gate,
            )
        )


def _check_combine(
    combine: Combine,
    aggregates: Mapping[str, Aggregate],
    schema: pa.Schema,
    *,
    step: str,
    **others: Any,
) -> None:
    """Check that partial results can be made, if floats may be combined.

    Raises:
        SettingError: an aggregate or another option forbids it.
    """
    if combine == "exact":
        return
    written = [name for name, value in others.items() if value not in (None, "drop")]
    why_not = why_no_parts(aggregates, schema)
    if written:
        why_not = f"{written[0]}= needs each row where windows close"
    if why_not:
        raise SettingError(
            f"step {step!r}: combine='anywhere' adds partial results up, and {why_not}; omit one "
            "of the two"
        )


def _result_time(time: ResultTime, *, step: str, **others: Any) -> ResultTime | None:
    """Return the event time of results; None if it is the window's end.

    Raises:
        SettingError: another option forbids it.
    """
    if time == "end":
        return None
    if written := [name for name, value in others.items() if value not in (None, "drop")]:
        raise SettingError(
            f"step {step!r}: with {written[0]}= the event time of results is the end of the "
            f"window; omit time={time!r}, or {written[0]}="
        )
    return time


def _empty_ns(empty: Duration | None, window: Window, *, step: str, **others: Any) -> int:
    """Return how long windows leave without rows; 0 if they do not.

    Raises:
        SettingError: not a length of time, more windows than there may be, or another option
            forbids it.
    """
    if empty is None:
        return 0
    if isinstance(empty, bool):
        raise SettingError(
            f"step {step!r}: empty={empty} does not say for how long; a key may never have a row "
            "again, so write a length of time, such as empty='1h'"
        )
    empty_ns = duration_ns(empty, what=f"step {step!r}: empty", positive=True)
    if written := [name for name, value in others.items() if value not in (None, "drop", "exact")]:
        raise SettingError(
            f"step {step!r}: empty= is for windows that leave once, of whole results; omit it, or "
            f"{written[0]}="
        )
    if empty_ns > _MOST_EMPTY * window.slide_ns:
        raise SettingError(
            f"step {step!r}: empty={shown(empty)} has {empty_ns // window.slide_ns:,} windows for "
            f"each key; {_MOST_EMPTY:,} is the most: make it shorter"
        )
    return empty_ns


def _early(
    early: str | timedelta | int | None,
    counts: EarlyCounts,
    window: Window | Intervals,
    *,
    step: str,
    **others: Any,
) -> tuple[int, int]:
    """Return the time, or else the rows, after which results leave early; 0 if not.

    Raises:
        SettingError: neither a length of time nor a number of rows; rows, or new rows alone, with
            windows that overlap; new rows of windows that are counts of rows; or another option
            forbids it.
    """
    if counts not in ("all", "new"):
        raise SettingError(f"step {step!r}: early_counts={shown(counts)} must be 'all' or 'new'")
    if early is None:
        if counts == "new":
            raise SettingError(
                f"step {step!r}: early_counts='new' is for results that leave early, and here each "
                "leaves once; write early='10s', or omit early_counts="
            )
        return 0, 0
    if written := [name for name, value in others.items() if value not in (None, "drop", "exact")]:
        raise SettingError(
            f"step {step!r}: early= makes results leave several times, and {written[0]}= is for "
            "results that leave once; omit one of the two"
        )
    if isinstance(window, Rows):
        _check_early_rows(early, counts, window, step=step)
    is_sliding = isinstance(window, Window) and not window.is_tumbling
    if counts == "new" and (is_sliding or isinstance(window, OpenedBy)):
        raise SettingError(
            f"step {step!r}: early_counts='new' counts each row once, and here a row may be in "
            "several windows; write windows side by side, or omit early_counts="
        )
    if isinstance(early, int) and not isinstance(early, bool):
        if early < 1:
            raise SettingError(f"step {step!r}: early={early} rows must be at least 1")
        if early > MOST_ROWS:
            raise SettingError(
                f"step {step!r}: early={shown(early)} rows must be {MOST_ROWS:,} at most; omit it "
                "for results that leave once"
            )
        if is_sliding:
            raise SettingError(
                f"step {step!r}: early={early} counts rows of windows side by side, and a row here "
                "is in several; write a length of time, such as early='10s'"
            )
        return 0, early
    return duration_ns(early, what=f"step {step!r}: early", positive=True), 0


def _check_early_rows(early: Any, counts: EarlyCounts, window: Rows, *, step: str) -> None:
    """Check that windows of so many rows can leave early.

    Raises:
        SettingError: they overlap, or their results would have new rows alone.
    """
    if window.every < window.size:
        raise SettingError(
            f"step {step!r}: early={shown(early)} is for windows side by side, and a row is in "
            f"several of rows({window.size}, every={window.every}); omit one of the two"
        )
    if counts == "new":
        raise SettingError(
            f"step {step!r}: early_counts='new' would start a window of rows({window.size}) again "
            "before it is full; write a smaller number of rows in its place"
        )


def _refuse_time(time: ResultTime, *, step: str) -> None:
    """Check that no event time of results is given without windows.

    Raises:
        SettingError: one is.
    """
    if time != "end":
        raise SettingError(
            f"step {step!r}: time={shown(time)} is a moment of a window, and without window= a "
            "change has the event time of the row that makes it; omit time=, or write "
            "window=sw.everything()"
        )


def _refuse_numbered(window: Intervals | None, *, step: str, **options: Any) -> None:
    """Check that no option of numbered windows is given for others.

    Raises:
        SettingError: an option was written.
    """
    what = "without window= there is none"
    if window is not None:
        what = f"window={window.word}(…) follows from the rows of each key"
    for name, value in options.items():
        if value not in (None, "drop", "exact", "all"):
            windows = "windows" if name.startswith("early") else "windows that all keys share"
            raise SettingError(
                f"step {step!r}: {name}={shown(value, 40)} is for {windows}, and {what}; omit "
                f"{name}=, or write tumbling('1s') or sliding('10s', '2s')"
            )


def _refuse_totals(
    every: Duration | None, keep: Duration | None, on_missing: OnMissing, *, step: str
) -> None:
    """Check that no option of an aggregate without windows is given with one.

    Raises:
        SettingError: an option was written.
    """
    options = {"every": every, "keep": keep, "on_missing": on_missing}
    for name, value in options.items():
        if value in (None, "error"):
            continue
        raise SettingError(
            f"step {step!r}: {name}={shown(value)} is for an aggregate without window=, whose "
            "results change; omit one of the two"
        )


def _check_window(given: Any, *, step: str) -> None:
    """Check that `given` is a window.

    Raises:
        TypeMismatch: it is not.
    """
    if not isinstance(given, Window | Intervals):
        raise TypeMismatch(
            f"step {step!r}: window={shown(given)} is not a window; write tumbling('1s'), "
            "sliding('10s', '2s'), calendar('day'), session('30m'), rows(100), "
            "opened_by(col('x') > 8, '15s') or everything()"
        )


def _say_slack(release: Release, *, step: str) -> None:
    """Warn where the flow has a slack, at the line that the user wrote."""
    if not isinstance(release, ReleaseRule) or not release.slack_ns:
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_RUNTIME):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"step {step!r}: close= says how long its windows wait, so "
        f"slack={format_ns(release.slack_ns)} of the flow is not for it: rows leave its gate as "
        "they come",
        UserWarning,
        stacklevel=level,
    )

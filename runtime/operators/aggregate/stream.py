"""The method `aggregate` of streams."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from slackwater.runtime.calls import checked_call
from slackwater.runtime.closing.policy import Closing
from slackwater.runtime.errors import TypeMismatch
from slackwater.runtime.model import Release, ReleaseRule, format_ns
from slackwater.runtime.operators.aggregate.close import close_of, no_slack, refuse_drift
from slackwater.runtime.operators.aggregate.schema import (
    aggregated_schema,
    revised,
    scaled,
    with_chance,
    with_three,
)
from slackwater.runtime.operators.aggregate.step import Aggregate, AggregateStep, Late, Window
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.drift import DriftGiven, checked_drift
from slackwater.runtime.operators.ground.streams import (
    AnyStream,
    Names,
    names_of,
    refuse_revised,
)
from slackwater.runtime.plan.event_time_type import event_time_type
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.shown import shown

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
        window: Window,
        by: Names = (),
        slack: Slack = AS_FLOW,
        late: Late = "drop",
        close: Closing | None = None,
        drift: DriftGiven = None,
        replicas: int = 1,
        name: str | None = None,
        **named: Aggregate,
    ) -> Self:
        """Aggregate each key's rows in each window of event time.

        Args:
            columns: {column: aggregate}, for names that Python cannot spell.
            window: tumbling("1s") or sliding("10s", "2s").
            by: the key columns; none: all rows together.
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
            name: the name of the step.
            named: column=aggregate, such as n=count().
        """
        name = self._step_name("aggregate", name)
        _check_window(window, step=name)
        keys = names_of(by)
        aggregates = checks.together(columns, named, step=name)
        checks.replicas(replicas, keys=keys, step=name)
        refuse_revised(self.flow, self.name, step=name)
        time = event_time_type(self.flow.steps, self._in)
        schema = aggregated_schema(self.schema, keys, aggregates, time=time, step=name)
        release = self.flow.release_of(slack, step=name)
        allowed = checked_drift(
            drift, [self.schema], span_ns=window.size_ns, span="window=", step=name
        )
        schema = with_three(schema, aggregates, allowed, step=name)
        closes = None
        if close is not None:
            closes = close_of(close, self.flow.steps, self._in, window, self.schema, step=name)
            refuse_drift(allowed, step=name)
            release, schema = no_slack(slack, step=name), with_chance(schema, step=name)
            _say_slack(self.flow.release, step=name)
        return self._add(
            AggregateStep(
                name=name,
                inputs=self._in,
                schema=revised(schema, late, step=name),
                keys=keys,
                window=window,
                aggregates=scaled(aggregates, self.schema),
                release=release,
                late=late,
                close=closes,
                drift=allowed,
                replicas=replicas,
            )
        )


def _check_window(given: Any, *, step: str) -> None:
    """Check that `given` is a window.

    Raises:
        TypeMismatch: it is not.
    """
    if not isinstance(given, Window):
        raise TypeMismatch(
            f"step {step!r}: window={shown(given)} is no window; write tumbling('1s') or "
            "sliding('10s', '2s')"
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

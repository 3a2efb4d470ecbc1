"""`close=` of an aggregate: its settings, and their checks where a user writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from slackwater.runtime.closing.policy import Closing
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.simple import EventDriven
from slackwater.runtime.errors import SettingError, TypeMismatch
from slackwater.runtime.model import ON_ARRIVAL, Release
from slackwater.runtime.operators.aggregate.written import Window
from slackwater.runtime.operators.ground.checks import word_type
from slackwater.runtime.operators.ground.drift import Drift
from slackwater.runtime.plan.arrivals import (
    WORDS_PER_SLIDE,
    goes_by_clock,
    sources_of,
    sources_upstream,
)
from slackwater.runtime.plan.slack import AsFlow, Slack
from slackwater.runtime.plan.step import Step
from slackwater.runtime.shown import shown


@dataclass(frozen=True)
class CloseInTime:
    """A policy closes windows by the arrivals of rows, and not by the watermark.

    Attributes:
        policy: the policy that closes windows.
        type: the column that tells types of rows apart, each with its own delays; None: rows of one
            source are of one type.
        speed: how many times faster than the clock arrivals go; None if that is not known, as the
            sources are not replayed at one speed.
        every_ns: a tenth of the windows' slide: the policy hears at this interval how far arrivals
            have come.
        awaits: whether the promises of its gate tell that each source has been heard, where windows
            close by the clock: every source promises something before its end.
        untold: reasons why windows close by the clock of the slot instead: sources without an
            arrival column, and steps whose rows are new events. Empty if they close by arrivals.
    """

    policy: Closing
    type: str | None
    speed: float | None
    every_ns: int
    awaits: bool = False
    untold: tuple[str, ...] = ()

    @property
    def by_clock(self) -> bool:
        """Whether no source tells of arrivals."""
        return bool(self.untold)


def close_of(
    policy: Any,
    steps: Mapping[str, Step],
    inputs: tuple[str, ...],
    window: Window,
    schema: pa.Schema,
    *,
    step: str,
) -> CloseInTime:
    """Return how the windows of a step close.

    Args:
        policy: the value that was written.
        steps: {name: step}, of the flow so far.
        inputs: the inputs of the step.
        window: the windows of the step.
        schema: the schema of its input.
        step: the step's name, for errors.

    Raises:
        TypeMismatch: `policy` is no closing policy, or the column of types cannot be a key.
        ColumnError: the column of types is not there.
        SettingError: the windows have an offset, or are those of a calendar.
    """
    if isinstance(policy, type) or not callable(getattr(policy, "begin", None)):
        raise TypeMismatch(
            f"step {step!r}: close={shown(policy)} is not a closing policy; write "
            "sw.closing.probslack(miss=0.1), sw.closing.event_driven(), sw.closing.mean_delay() "
            "or sw.closing.ignore()"
        )
    if not window.has_whole_slides:
        way_out = (
            "offset= and closed= of the window" if window.offset_ns else "write tumbling('1d')"
        )
        raise SettingError(
            f"step {step!r}: close= knows windows that begin at whole slides since 1970, and not "
            f"{window.text}; omit close=, or {way_out}"
        )
    kind = getattr(policy, "type", None)
    if kind is not None:
        word_type(schema, kind, step=step, role="type")
    untold = goes_by_clock(steps, inputs)
    speeds = {one.source.speed for one in sources_of(steps, inputs)}
    speed = speeds.pop() if len(speeds) == 1 else None
    every_ns = max(window.slide_ns // WORDS_PER_SLIDE, 1)
    sources = sources_upstream(steps, inputs)
    awaits = not any(one.source.promises_nothing for one in sources)
    disorders_ns = [None if untold else one.source.most_disorder_ns for one in sources]
    bounds_ns = [each for each in disorders_ns if each is not None]
    if isinstance(policy, ProbSlack | EventDriven) and len(bounds_ns) == len(disorders_ns):
        policy = policy.of_sources(max(bounds_ns))
    return CloseInTime(policy, kind, 1.0 if untold else speed, every_ns, awaits, tuple(untold))


def refuse_drift(drift: Drift | None, *, step: str) -> None:
    """Check that an aggregate has not both `close=` and `drift=`.

    Raises:
        SettingError: it has both.
    """
    if drift is not None:
        raise SettingError(
            f"step {step!r}: close= and drift= exclude each other: a policy does not know when the "
            "moved windows end; write two aggregates, or omit one of the two"
        )


def no_slack(slack: Slack, *, step: str) -> Release:
    """Return the rule of a gate before windows that close in time.

    Raises:
        SettingError: a slack was written.
    """
    if not isinstance(slack, AsFlow):
        raise SettingError(
            f"step {step!r}: close= and slack= both say how long a window waits; omit slack=: "
            "rows leave the gate as they come"
        )
    return ON_ARRIVAL

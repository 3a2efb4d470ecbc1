"""Functions that users write after `close=`; lengths of time are words."""

from __future__ import annotations

from typing import Any

from slackwater.runtime.calls import checked_options
from slackwater.runtime.closing.policy import Closing
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.simple import ByTime, EventDriven
from slackwater.runtime.closing.typed import Typed
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Duration, duration_ns
from slackwater.runtime.shown import shown

DEFAULT_MISS = 0.1


@checked_options
def ignore(*, tick: Duration = "1ms") -> Closing:
    """Close a window at its end by the clock of arrivals: later rows are late.

    Args:
        tick: the resolution of clocks.

    Raises:
        SettingError: a length of time is out of its range.

    Source: [probslack] §2, *ignore*.
    """
    return ByTime(0, tick_ns=duration_ns(tick, what="tick", positive=True))


@checked_options
def event_driven(
    *,
    disorder: Duration = 0,
    type: str | None = None,  # noqa: A002
    tick: Duration = "1ms",
) -> Closing:
    """Close a window once each type has an event past its end.

    No row is missed where events of a type come in order. A type that falls silent holds windows
    open.

    Args:
        disorder: how far events of a type may be out of order; a window waits that much longer.
        type: the column with the type of each event; if omitted, a source is one type.
        tick: the resolution of clocks.

    Raises:
        SettingError: a length of time is out of its range.

    Source: [probslack] §2, *event-driven*.
    """
    policy = EventDriven(
        duration_ns(disorder, what="disorder"),
        tick_ns=duration_ns(tick, what="tick", positive=True),
    )
    return policy if type is None else Typed(policy, type)


@checked_options
def mean_delay(slack: Duration | None = None, *, tick: Duration = "1ms") -> Closing:
    """Close a window a fixed time after its end, by the clock of arrivals.

    Args:
        slack: the fixed time; if omitted, the mean delay of all rows so far.
        tick: the resolution of clocks.

    Raises:
        SettingError: a length of time is out of its range.

    Source: [probslack] §2, *user-defined*.
    """
    return ByTime(
        None if slack is None else duration_ns(slack, what="slack"),
        tick_ns=duration_ns(tick, what="tick", positive=True),
    )


@checked_options
def probslack(
    miss: float | None = None,
    *,
    slack: Duration | None = None,
    at_most: Duration | None = None,
    type: str | None = None,  # noqa: A002 - the users' word
    tick: Duration = "1ms",
    **settings: Any,
) -> Closing:
    """Close a window when a further row is unlikely enough.

    Args:
        miss: the share of windows that may miss a row, above 0 and below 1; 0.1 unless slack is
            bounded.
        slack: instead of `miss`, the largest mean slack: as few rows are missed as it allows.
        at_most: the largest slack of a window; the rows that this misses are counted.
        type: the column with the type of each event, each type with its own delays and rates; if
            omitted, a source is one type.
        tick: the resolution of clocks: times are counted in ticks.
        settings: `ordered=True` or `False`, where it is known whether events of a type come in
            order: else ProbSlack finds out; `fit_rows`, `first_rows`, `sliding`, `together`: the
            rows of an estimate; `scale`, `guard`: how careful it is; `early=False`: no window
            closes before its end. See `ProbSlack`.

    Raises:
        SettingError: a setting is out of its range, or no setting has that name.

    Source: [probslack] §3.
    """
    wrong = sorted(settings.keys() - _SETTINGS)
    if wrong:
        raise SettingError(
            f"probslack has no setting {shown(wrong[0])}; its settings are "
            f"{', '.join(sorted(_SETTINGS))}"
        )
    if miss is None and slack is None:
        miss = DEFAULT_MISS
    policy = ProbSlack(
        miss,
        slack_ns=None if slack is None else duration_ns(slack, what="slack"),
        at_most_ns=None if at_most is None else duration_ns(at_most, what="at_most"),
        tick_ns=duration_ns(tick, what="tick", positive=True),
        all_types=type is None,
        **settings,
    )
    return policy if type is None else Typed(policy, type)


_SETTINGS = {"ordered", "fit_rows", "first_rows", "sliding", "together", "scale", "guard", "early"}

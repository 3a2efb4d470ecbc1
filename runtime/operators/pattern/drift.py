"""`drift=` needs settings under which each choice of events is a match by itself.

Which of several matches leaves (the earliest, the first of a window, one whose events are unused)
depends on the order of events, and clocks allow many. The answer for all matches together fits in
no column of a row; so each possible match leaves, and such settings are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa

from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.operators.ground.drift import Drift, DriftGiven, checked_drift
from slackwater.runtime.patterns.normal import Normal
from slackwater.runtime.patterns.scopes import CountWindows, TimeWindows, WindowRule, Within
from slackwater.runtime.patterns.settings import Selection
from slackwater.runtime.shown import shown

Consumption: TypeAlias = Literal["consumed", "zero"]


class Leaves(NamedTuple):
    """The settings that say which matches leave."""

    selection: Selection
    consumption: Consumption


UNLESS_TOLD = Leaves("first", "consumed")
WITH_DRIFT = Leaves("each", "zero")
"""The default with drift=, and the only setting that it allows."""
_WHY = {
    "selection": "which match is the {0} depends on the order of events",
    "consumption": "what was used up before depends on the order of events",
}


def checked_pattern_drift(
    given: DriftGiven,
    pattern: Normal,
    scope: Within | WindowRule,
    schema: pa.Schema,
    *,
    words: Mapping[str, str],
    matches: object,
    shed: object,
    step: str,
) -> Drift | None:
    """Return the bound that `drift=` says; None if it was not written.

    Args:
        given: the value that was written.
        pattern: the pattern.
        scope: the scope of a match.
        schema: the schema of the rows.
        words: `skip`, `selection` and `consumption`, as they are to be.
        matches: the most matches of a window; None: all.
        shed: how events are dropped; None: they are not.
        step: the step's name, for errors.

    Raises:
        SettingError: it is too long, or does not go with another setting.
        FlowError: it does not go with the pattern.
        ColumnError, TypeMismatch: its column is not there, or not whole.
    """
    if given is None:
        return None
    span_ns, span = _span(scope, step=step)
    drift = checked_drift(given, [schema], span_ns=span_ns, span=span, step=step)
    for what, is_possible in WITH_DRIFT._asdict().items():
        if (word := words[what]) != is_possible:
            raise SettingError(
                f"step {step!r}: {what}={word!r} does not go with drift=: "
                f"{_WHY[what].format(word)}, which clocks do not tell; omit it, then each possible "
                "match leaves"
            )
    if matches is not None:
        raise SettingError(
            f"step {step!r}: matches={shown(matches)} does not go with drift=: which matches of a "
            "window come first depends on the order of events, which clocks do not tell; omit it, "
            "then each possible match leaves"
        )
    if shed is not None:
        raise SettingError(
            f"step {step!r}: shed= does not go with drift=: events are dropped by their positions "
            "in windows, which clocks do not tell; omit one of the two"
        )
    places = [place for one in pattern.alternatives for place in one.places]
    if words["skip"] == "next" and any(one.is_repeated or one.least > 1 for one in places):
        raise FlowError(
            f"step {step!r}: skip='next' with repeat does not go with drift=: which event is the "
            "next of those that are repeated depends on their order, which clocks do not tell; "
            "leave skip='any', or write the event as often as it is to come"
        )
    return drift


def _span(scope: Within | WindowRule, *, step: str) -> tuple[int, str]:
    """Return the length of a scope, and the name of that setting."""
    if isinstance(scope, TimeWindows):
        return scope.size_ns, "window="
    if isinstance(scope, CountWindows) or scope.span_ns is None:
        raise SettingError(
            f"step {step!r}: drift= does not go with scopes of a number of events: which events "
            "are in one depends on their order, which clocks do not tell; give a time, such as "
            'within="5s", sw.sliding(…) or sw.patterns.opened_by(A, within="15s")'
        )
    return scope.span_ns, "within="

"""Every setting that names a column is checked where it is written, and told the nearest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import SlackwaterError

WRONG = "sped"


def rows(flow: sw.Dataflow, name: str, **options: Any) -> Any:
    given = sw.table({"t": [1], "speed": [5], "line": ["20"]})
    return flow.source(name, given, **{"event_time": "t", "time_unit": "s", **options})


SOURCES: dict[str, dict[str, Any]] = {
    "event_time": {"event_time": WRONG},
    "arrival": {"arrival": WRONG},
    "writer": {"writer": WRONG},
    "sequence": {"sequence": WRONG, "out_of_order": "sequence"},
    "by_sequence": {"sequence": WRONG, "out_of_order": sw.order.by_sequence(timeout="1s")},
    "promise": {"promise": sw.col(WRONG)},
    "clock offset": {"clock": sw.clocks.clock_columns(WRONG, unit="ns")},
    "clock bound": {"clock": sw.clocks.clock_columns("speed", WRONG, unit="ns")},
}
A = sw.patterns.event("a", where=sw.col("speed") > 1)
B = sw.patterns.event("b")
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "filter": lambda s, _: s.filter(sw.col(WRONG) > 1),
    "with_columns": lambda s, _: s.with_columns(x=sw.col(WRONG)),
    "select": lambda s, _: s.select(WRONG),
    "select renamed": lambda s, _: s.select(x=WRONG),
    "drop": lambda s, _: s.drop(WRONG),
    "key_by": lambda s, _: s.key_by(WRONG),
    "dedupe on": lambda s, _: s.dedupe(WRONG, within="1s"),
    "by": lambda s, _: s.aggregate(window=sw.tumbling("1s"), by=WRONG, n=sw.count()),
    "count": lambda s, _: s.aggregate(window=sw.tumbling("1s"), n=sw.count(WRONG)),
    "quantile": lambda s, _: s.aggregate(window=sw.tumbling("1s"), n=sw.quantile(WRONG, 0.5)),
    "drift": lambda s, _: s.aggregate(window=sw.tumbling("1s"), drift=WRONG, n=sw.count()),
    "closing type": lambda s, _: s.aggregate(
        window=sw.tumbling("1s"), close=sw.closing.probslack(miss=0.1, type=WRONG), n=sw.count()
    ),
    "driven type": lambda s, _: s.aggregate(
        window=sw.tumbling("1s"), close=sw.closing.event_driven(type=WRONG), n=sw.count()
    ),
    "join on": lambda s, o: s.join(o, on=WRONG, within="1s"),
    "join left_on": lambda s, o: s.join(o, left_on=WRONG, right_on="speed", within="1s"),
    "join right_on": lambda s, o: s.join(o, left_on="speed", right_on=WRONG, within="1s"),
    "join where": lambda s, o: s.join(o, on="line", where=sw.col(WRONG) > 1, within="1s"),
    "join drift": lambda s, o: s.join(o, on="line", drift=WRONG, within="1s"),
    "first": lambda s, _: s.followed_by(first=sw.col(WRONG) > 1, then=sw.lit(True), within="1s"),
    "then": lambda s, _: s.followed_by(first=sw.lit(True), then=sw.col(WRONG) > 1, within="1s"),
    "followed_by by": lambda s, _: s.followed_by(
        first=sw.lit(True), then=sw.lit(True), by=WRONG, within="1s"
    ),
    "pattern type": lambda s, _: s.pattern(sw.patterns.seq(A, B), type=WRONG, within="1s"),
    "pattern id": lambda s, _: s.pattern(sw.patterns.seq(A, B), id=WRONG, within="1s"),
    "pattern by": lambda s, _: s.pattern(sw.patterns.seq(A, B), by=WRONG, within="1s"),
    "followed_by drift": lambda s, _: s.followed_by(
        first=sw.lit(True), then=sw.lit(True), drift=WRONG, within="1s"
    ),
    "pattern where": lambda s, _: s.pattern(
        sw.patterns.seq(A, sw.patterns.event("c", where=sw.col(WRONG) > 1)), within="1s"
    ),
    "earlier event": lambda s, _: s.pattern(
        sw.patterns.seq(A, sw.patterns.event("c", where=sw.col("speed") > A[WRONG])), within="1s"
    ),
    "distinct": lambda s, _: s.pattern(
        sw.patterns.seq(A, sw.patterns.any_of(2, B, distinct=WRONG)), window=sw.tumbling("1s")
    ),
    "feature": lambda s, _: s.pattern(
        sw.patterns.seq(A, B),
        window=sw.tumbling("1s"),
        shed=sw.shedding.espice("1s", feature=sw.col(WRONG) > 1),
    ),
}


@pytest.mark.parametrize("setting", SOURCES)
def test_a_source_checks_the_columns_that_it_is_told(setting: str) -> None:
    flow = sw.Dataflow("f")
    with pytest.raises(SlackwaterError, match=rf"'{WRONG}'.*nearest.*'speed'"):
        rows(flow, "s", **SOURCES[setting])


@pytest.mark.parametrize("setting", STEPS)
def test_a_step_checks_the_columns_that_it_is_told(setting: str) -> None:
    flow = sw.Dataflow("f")
    with pytest.raises(SlackwaterError, match=rf"{WRONG}'.*nearest.*speed'"):
        STEPS[setting](rows(flow, "s"), rows(flow, "o"))

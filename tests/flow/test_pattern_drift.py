"""What `drift=` of a pattern may be, what it does not go with, and a flow with it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import (
    ColumnError,
    DuplicateName,
    FlowError,
    SettingError,
    SlackwaterError,
    TypeMismatch,
)
from tests.flow.test_drift import buses

SLOW, FAST, OTHER = (
    sw.patterns.event("slow", where=sw.col("speed") <= 2),
    sw.patterns.event("fast", where=sw.col("speed") > 2),
    sw.patterns.event("other", where=sw.col("stops") == 9),
)


def found(stream: sw.Stream, *parts: sw.Part, **given: Any) -> sw.Stream:
    wanted: dict[str, Any] = {"within": "10ms", "drift": "2ms", "by": "line", "name": "jumps"}
    return stream.pattern(sw.patterns.seq(*(parts or (SLOW, FAST))), **(wanted | given))


@pytest.mark.parametrize(
    ("parts", "given", "error", "words"),
    [
        ((), {"drift": "5.1ms"}, SettingError, "more than half of within=10.0 ms"),
        ((), {"drift": "later"}, ColumnError, "drift='later' is neither a length"),
        ((), {"drift": "x"}, TypeMismatch, "drift='x' is double"),
        (
            (),
            {"within": None, "window": sw.tumbling("3ms")},
            SettingError,
            "half of window=3.00 ms",
        ),
        ((), {"within": 5}, SettingError, "drift= does not go with scopes of a number of events"),
        (
            (),
            {"within": None, "window": sw.patterns.count_window(5)},
            SettingError,
            "depends on their order.*give a time",
        ),
        (
            (),
            {"within": None, "window": sw.patterns.opened_by(SLOW, events=5)},
            SettingError,
            "scopes of a number of events",
        ),
        (
            (),
            {"selection": "first"},
            SettingError,
            "selection='first' does not go with drift=: which match is the first depends on.*"
            "omit it",
        ),
        ((), {"selection": "cumulative"}, SettingError, "selection='cumulative' does not go"),
        (
            (),
            {"consumption": "consumed"},
            SettingError,
            "consumption='consumed' does not go with drift=: what was used up.*omit it",
        ),
        (
            (),
            {"within": None, "window": sw.tumbling("1s"), "matches": 1},
            SettingError,
            "matches=1 does not go with drift=.*come first.*omit it",
        ),
        (
            (),
            {"within": None, "window": sw.tumbling("1s"), "shed": sw.shedding.espice("1s")},
            SettingError,
            "shed= does not go with drift=: .*positions.*omit one of the two",
        ),
        (
            (SLOW, sw.patterns.repeat(FAST, 2)),
            {"skip": "next"},
            FlowError,
            "skip='next' with repeat does not go with drift=.*leave skip='any'",
        ),
    ],
)
def test_a_pattern_refuses_what_clocks_cannot_tell(
    parts: tuple[sw.Part, ...],
    given: dict[str, Any],
    error: type[SlackwaterError],
    words: str,
) -> None:
    with pytest.raises(error, match=words) as problem:
        found(buses(), *parts, **given)
    assert "'jumps'" in str(problem.value)


def test_a_key_named_as_the_column_that_drift_adds_is_refused() -> None:
    stream = buses().with_columns(certain=sw.col("stops") > 3)
    with pytest.raises(DuplicateName, match=r"'certain'.*rename the column"):
        found(stream, by="certain")


def test_a_pattern_with_drift_has_each_match_unless_told_and_explains_it() -> None:
    stream = found(buses(), SLOW, sw.patterns.no(OTHER), FAST)
    stream.sink("out", sw.collect_sink())
    text = stream.flow.explain()
    for line in (
        "pattern  slow → no other → fast",
        "leaves   each match\n",
        "drift    ± 2.00 ms: each match that may be one, marked",
    ):
        assert line in text
    assert stream.schema.names[-2:] == ["events", "certain"]
    assert stream.schema.field("certain").type == pa.bool_()


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("is_keyed", [False, True])
def test_a_flow_keeps_matches_of_a_pattern_of_which_clocks_leave_the_order_open(
    replicas: int, is_keyed: bool
) -> None:
    flow = sw.Dataflow("clocks", slack=None)
    given: dict[str, Any] = {
        "within": "20ms",
        "drift": sw.clocks.clock_bound("off", most="3ms"),
        "replicas": replicas,
        "name": "jumps",
    }
    pattern = sw.patterns.seq(SLOW, sw.patterns.no(OTHER), FAST)
    stream = buses(flow)
    made = (
        stream.key_by("line").pattern(pattern, **given)
        if is_keyed
        else stream.pattern(pattern, by="line", **given)
    )
    made.sink("out", sw.collect_sink())
    made.filter(sw.col("certain")).sink("sure", sw.collect_sink())
    made.late().sink("late", sw.collect_sink())
    job = sw.Simulation().submit(flow)
    report = job.wait()
    columns = ["line", "slow_ts", "fast_ts", "fast_stops", "certain"]
    rows = job.result("out").select(columns).to_pylist()
    # 99 ± 2 and 103 ± 3, for 90 is cut to that: 103 may be before 99. 1 is too far away.
    assert [tuple(row.values()) for row in rows] == [("a", 99, 103, 5, False)]
    assert job.result("sure").num_rows == 0
    assert {one.name: one.marked for one in report.sinks}["out"] == {"uncertain": 1}
    assert report.ledger.is_balanced
    counted = [one.counted for one in report.stages if one.kind == "pattern"]
    assert sum(one["bounds_cut"] for one in counted) == 1


STRIKE, WHISTLE, LINE, GOAL = (
    sw.patterns.event(name, of_type=name) for name in ("strike", "whistle", "line", "goal")
)


@pytest.mark.parametrize(
    ("events", "certain"),
    [
        ({"strike": 0, "line": 100, "goal": 200}, [True]),
        ({"strike": 0, "line": 100, "goal": 106}, [False]),
        ({"strike": 0, "goal": 100, "line": 106}, [False]),
        ({"strike": 0, "goal": 100, "line": 120}, []),
        ({"strike": 0, "line": 100, "goal": 995}, [False]),
        ({"strike": 0, "whistle": 95, "line": 100, "goal": 200}, [False]),
        ({"strike": 0, "whistle": 50, "line": 100, "goal": 200}, []),
    ],
)
def test_what_the_page_says_of_goals(events: dict[str, int], certain: list[bool]) -> None:
    """docs/pattern-clocks.md."""
    flow = sw.Dataflow("goals")
    table = pa.table({"ts": [*events.values()], "what": [*events], "match": [1] * len(events)})
    sensors = flow.source("sensors", sw.table(table), event_time="ts", time_unit="ms")
    sensors.key_by("match").pattern(
        sw.patterns.seq(STRIKE, sw.patterns.no(WHISTLE), LINE, GOAL),
        type="what",
        within="1s",
        drift="5ms",
    ).sink("out", sw.collect_sink())
    job = sw.Simulation().submit(flow)
    job.wait()
    assert job.result("out")["certain"].to_pylist() == certain

"""What a join keeps its rows by: as written, as the flow says, or as its sources allow."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.operators.join.step import JoinStep
from tests.support.streams import BUS, LOOP, FakeInput


def joined(
    *, keep: Any = None, of_flow: Any = None, slack: str | None = "1s", **options: Any
) -> sw.Dataflow:
    """A join behind a filter and a merge; the options are those of its left source."""
    flow = sw.Dataflow("f", slack=slack, keep=of_flow)
    buses = flow.source("buses", FakeInput(BUS), event_time="ts", **options)
    loops = flow.source("loops", FakeInput(LOOP), event_time="ts")
    left = buses.filter(sw.col("speed") < 8).merge(name="all")
    left.join(loops, on="area", within="5s", keep=keep, name="jams").sink("out", sw.collect_sink())
    return flow


def keep_of(flow: sw.Dataflow) -> str:
    step = flow.steps["jams"]
    assert isinstance(step, JoinStep)
    return step.keep


def test_a_join_keeps_by_the_promise_unless_it_or_its_flow_says_otherwise() -> None:
    assert keep_of(joined()) == "promise"
    assert keep_of(joined(of_flow="slack")) == "slack"
    assert keep_of(joined(of_flow="slack", keep="promise")) == "promise"
    assert keep_of(joined(keep="slack")) == "slack"


def test_behind_a_source_that_promises_nothing_the_promise_must_be_written() -> None:
    assert keep_of(joined(writer="line")) == "slack"
    assert keep_of(joined(writer="line", keep="promise")) == "promise"
    assert keep_of(joined(writer="line", of_flow="promise")) == "promise"
    for promises in ({"idle": "9s"}, {"disorder": "9s"}, {"promise": sw.col("ts")}):
        assert keep_of(joined(writer="line", **promises)) == "promise"


def test_keep_is_one_of_two_words() -> None:
    with pytest.raises(SettingError, match=r"keep='always' must be 'promise'"):
        joined(keep="always")
    with pytest.raises(SettingError, match=r"keep=True must be 'promise'"):
        joined(of_flow=True)


def test_explain_says_what_rows_are_kept_by_where_a_slack_may_make_some_late() -> None:
    assert "keeps" not in joined(slack=None).explain().partition("jams (join)")[2]
    by_promise = "keeps    rows until all have promised 5.00 s more, so that late ones find all"
    assert by_promise in joined().explain()
    by_slack = "keeps    rows until 5.00 s more were released; late ones may miss partners"
    assert f"{by_slack}\n" in joined(keep="slack").explain()
    silent = "buses promises nothing before its end"
    assert f"{by_slack} ({silent}; keep='promise' would keep all)" in (
        joined(writer="line").explain()
    )
    assert f"partners; {silent}: as many as most_kept_rows" in (
        joined(writer="line", keep="promise").explain()
    )


def test_explain_says_how_long_windows_stay_that_are_corrected() -> None:
    def corrected(**options: Any) -> str:
        flow = sw.Dataflow("f", slack="1s")
        buses = flow.source("buses", FakeInput(BUS), event_time="ts", **options)
        buses.aggregate(window=sw.tumbling("1s"), n=sw.count(), late="correct")
        return flow.explain()

    kept = "keeps    windows until all have promised their ends"
    assert f"{kept}\n" in corrected()
    silent = "buses promises nothing before its end"
    assert f"{kept}; {silent}: of as many rows as most_kept_rows" in corrected(writer="line")


def test_streams_after_key_by_take_it_too() -> None:
    flow = sw.Dataflow("f", slack="1s")
    buses, loops = (
        flow.source(name, FakeInput(schema), event_time="ts").key_by("area")
        for name, schema in (("buses", BUS), ("loops", LOOP))
    )
    buses.join(loops, within="5s", keep="slack", name="jams")
    assert keep_of(flow) == "slack"

"""Channels carry the fields that rows have and a step downstream reads, and no others."""

from __future__ import annotations

import pyarrow as pa

import slackwater as sw
from slackwater.runtime.flow.dataflow import SourceOptions
from slackwater.runtime.plan.plan import plan_stages

ROWS = pa.table({"ts": [1, 2], "key": [1, 2], "bus": ["a", "b"]})


def source(
    flow: sw.Dataflow, name: str, *, has_writers: bool = True, diverts: bool = False
) -> sw.Stream:
    settings: SourceOptions = {"on_bad": "divert"} if diverts else {}
    if has_writers:
        settings["writer"] = "bus"
    return flow.source(name, sw.table(ROWS), event_time="ts", time_unit="s", **settings)


def carried(flow: sw.Dataflow) -> dict[str, set[str]]:
    stages = plan_stages(flow.graph, fuse=False)
    return {channel.name: set(channel.row_fields) for stage in stages for channel in stage.inputs}


def test_writers_travel_as_far_as_a_gate_and_to_no_sink() -> None:
    flow = sw.Dataflow("writers")
    first = source(flow, "a").filter(sw.col("key") > 0, name="f")
    first.sink("seen", sw.collect_sink())
    plain = source(flow, "b", has_writers=False)
    flow.merge(first, plain, name="both").sink("out", sw.collect_sink())
    source(flow, "c").filter(sw.col("key") > 0, name="g").sink("others", sw.collect_sink())
    assert carried(flow) == {
        "a→f": {"writers"},
        "f→seen": set(),
        "f→both": {"writers"},
        "b→both": set(),
        "both→out": set(),
        "c→g": set(),
        "g→others": set(),
    }


def test_marks_travel_from_the_steps_that_give_them() -> None:
    flow = sw.Dataflow("marks")
    counts = source(flow, "a").aggregate(
        by="key", window=sw.tumbling("1s"), n=sw.count(), name="counts"
    )
    kept = counts.filter(sw.col("n") > 0, name="kept")
    kept.sink("out", sw.collect_sink())
    kept.dedupe(on="key", within="1s", name="first").sink("firsts", sw.collect_sink())
    assert carried(flow) == {
        "a→counts": {"writers"},
        "counts→kept": {"marks"},
        "kept→out": {"marks"},
        "kept→first": {"marks"},
        "first→firsts": {"marks"},
    }


def test_rows_of_replicas_have_the_hashes_of_keys_as_writers_up_to_a_gate() -> None:
    flow = sw.Dataflow("replicas")
    counts = source(flow, "a", has_writers=False).aggregate(
        by="key", window=sw.tumbling("1s"), n=sw.count(), replicas=2, name="counts"
    )
    met = counts.filter(sw.col("n") > 0, name="met")
    met.dedupe(on="key", within="1s", name="first").sink("out", sw.collect_sink())
    assert carried(flow) == {
        "a→counts.1": set(),
        "a→counts.2": set(),
        "counts.1→met": {"marks", "writers"},
        "counts.2→met": {"marks", "writers"},
        "met→first": {"marks", "writers"},
        "first→out": {"marks"},
    }


def test_late_rows_keep_marks_and_diverted_rows_have_no_field() -> None:
    flow = sw.Dataflow("side rows")
    rows, others = source(flow, "a", diverts=True), source(flow, "b", diverts=True)
    others.sink("seen", sw.collect_sink())
    counts = rows.aggregate(by="key", window=sw.tumbling("1s"), n=sw.count(), name="counts")
    counts.sink("out", sw.collect_sink())
    first = counts.dedupe(on="key", within="1s", name="first")
    first.sink("firsts", sw.collect_sink())
    first.late(name="late").sink("late-out", sw.collect_sink())
    bad = rows.diverted(name="bad")
    worse = others.diverted(name="worse")
    flow.merge(bad, worse, name="all").sink("bad-out", sw.collect_sink())
    names = ("first→late", "late→late-out", "a→bad", "bad→all", "worse→all")
    assert [carried(flow)[name] for name in names] == [{"marks"}, {"marks"}, set(), set(), set()]

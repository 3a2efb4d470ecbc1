"""Flows and streams show themselves in a notebook, and escape what users wrote."""

from __future__ import annotations

import pyarrow as pa

import slackwater as sw


def test_a_flow_and_a_stream_are_html_with_names_escaped() -> None:
    flow = sw.Dataflow("<b>flow</b>")
    table = pa.table({"ts": pa.array([1], pa.timestamp("us")), "a<b": ["x"]})
    stream = flow.source("in", sw.table(table), event_time="ts")
    stream.sink("out", sw.collect_sink())
    for shown in (flow._repr_html_(), stream._repr_html_()):
        assert "&lt;b" in shown
        assert "<b>" not in shown
        assert "a<b" not in shown
    assert "timestamp[us]" in stream._repr_html_()
    assert "out (sink) ← in" in flow._repr_html_()

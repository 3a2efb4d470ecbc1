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
    assert "font-family: monospace" in flow._repr_html_()


def test_a_report_is_a_few_lines_of_text_and_the_same_as_html() -> None:
    flow = sw.Dataflow("<i>few</i>")
    table = pa.table({"ts": pa.array([1, 2], pa.timestamp("us"))})
    flow.source("in", sw.table(table), event_time="ts").sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        report = nodes.submit(flow).wait()
    lines = str(report).split("\n")
    assert lines[0].startswith("flow '<i>few</i>' on simulator: done after")
    assert lines[1] == f"ledger: {report.ledger}"
    assert lines[2].startswith("sink 'out': 2 rows, latency p50")
    assert "&lt;i&gt;few" in report._repr_html_()

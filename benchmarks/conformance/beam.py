"""Beam's trigger transcripts: values, watermarks, and the panes that windows of 10 give."""

from __future__ import annotations

import json
from typing import Any

import slackwater as sw
from benchmarks.conformance.cases import Case, Rows, Suite, heard, results

SECOND = 1_000_000_000


def _transcript(case: Case) -> dict[str, Any]:
    """Return the events and the panes of a case."""
    text = (case.folder / case.input).read_text(encoding="utf-8")
    transcript: dict[str, Any] = json.loads(text)[case.name.removeprefix("beam-")]
    return transcript


BEAM = Suite("Beam triggers", answer=lambda case: _transcript(case)["panes"])


def _panes(case: Case, **late: Any) -> list[dict[str, Any]]:
    """Return the windows of a case that have values.

    A watermark is a row without a value, and no window waits for more than its end: so it leaves
    when the watermark, or a value, has passed it.
    """

    def windows(flow: sw.Dataflow) -> sw.Stream:
        events = [[at, at if what == "input" else None] for what, at in _transcript(case)["events"]]
        rows = heard(flow, events, {"t": "int64", "value": "int64"}, time_unit="s")
        made = rows.aggregate(
            window=sw.tumbling("10s"),
            slack="0s",
            values=sw.collect("value"),
            least=sw.min("value"),
            most=sw.max("value"),
            **late,
        )
        return made.filter(~sw.col("least").is_null()).with_columns(
            start=sw.col("window_start").cast("int64") // SECOND
        )

    return results(windows)


def _rows(panes: list[dict[str, Any]], *columns: str) -> Rows:
    return [
        [
            [pane["start"], pane["start"] + 9],
            pane.get("revision", 0),
            pane["values"],
            *(pane[name] for name in columns),
        ]
        for pane in panes
    ]


@BEAM.translation(
    "beam-fixed_default",
    "beam-timestamp_combiner_custom_timestamping_eow",
    "beam-known_late_data_no_watermark_hold_possible",
)
def fixed(case: Case) -> Rows:
    return _rows(_panes(case))


@BEAM.translation("beam-fixed_default_late_data")
def corrected(case: Case) -> Rows:
    return _rows(_panes(case, late="correct"))


@BEAM.translation("beam-timestamp_combiner_earliest", "beam-known_late_data_watermark")
def earliest(case: Case) -> Rows:
    return _rows(_panes(case), "least")


@BEAM.translation("beam-timestamp_combiner_latest")
def latest(case: Case) -> Rows:
    return _rows(_panes(case), "most")


BEAM.differs(
    "beam-known_late_data_watermark",
    "the earliest time is that of all rows of a window, not of those that were in time",
    extra=["[0, 9] 0 [2, 3, 7, 8] 2"],
    lacking=[0],
)
BEAM.lacks("a pane without values at a window's end", "beam-discarding_early_fixed")
BEAM.lacks("late results of new values alone", "beam-garbage_collection")
BEAM.lacks("late results of sessions", "beam-early_late_sessions")
BEAM.lacks(
    "a result's event time by a function of its window",
    "beam-timestamp_combiner_custom_timestamping_earliest",
)

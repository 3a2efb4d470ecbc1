from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slackwater.report.deadline_picture import deadline_figure, draw_deadline
from slackwater.report.picture import draw_latency, latency_figure, sparkline
from slackwater.runtime.measure.prediction import PredictedSpan, PredictionReport
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.measure.series import LatencySeries
from tests.support.reports import MS, SECOND, START_NS, city_report, with_deadline


def size_of(png: Path) -> tuple[int, int]:
    head = png.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


@pytest.mark.parametrize(
    "report",
    [
        city_report(1_000),
        city_report(10),  # a single result
        city_report(0),
        replace(city_report(), sinks=[]),
        replace(city_report(), flow="$x_{", sinks=city_report().sinks * 3),
    ],
    ids=["many", "one", "none", "no sinks", "three sinks"],
)
def test_any_report_has_a_picture(report: JobReport, tmp_path: Path) -> None:
    draw_latency(report, tmp_path / "latency.png")
    width, height = size_of(tmp_path / "latency.png")
    assert width >= 800
    assert height >= 300


@pytest.mark.parametrize("seconds", [0, 1, 330, 2_000])
def test_any_run_under_a_deadline_has_its_panels(seconds: int, tmp_path: Path) -> None:
    tuning = with_deadline(city_report(), seconds=seconds).tuning
    assert tuning is not None
    draw_deadline(tuning, tmp_path / "deadline.png", flow="$x_{")
    width, height = size_of(tmp_path / "deadline.png")
    assert width >= 800
    assert height >= 800


def test_a_steady_hold_lies_below_its_panels_edge_and_late_rows_have_a_panel() -> None:
    tuning = with_deadline(city_report(), seconds=30).tuning
    assert tuning is not None
    _, waits, _, late, _ = deadline_figure(tuning, flow="city").axes
    held_s = waits.lines[0].get_ydata()
    assert held_s.min() == held_s.max() == 4.0
    assert waits.get_ylim()[1] > 4.1
    assert "slack or hold" in waits.get_ylabel()
    assert late.lines[0].get_ydata().tolist() == [1.0] * len(held_s)


def series(p99_ms: list[int]) -> LatencySeries:
    made = LatencySeries()
    for second, latency_ms in enumerate(p99_ms):
        if latency_ms:
            stimulus_ns = np.array([START_NS + second * SECOND])
            made.add(stimulus_ns, np.array([latency_ms * MS]))
    return made


def test_the_sparkline_rises_with_the_latency_and_leaves_gaps() -> None:
    shown = sparkline(series([1, 3, 10, 0, 100]))
    assert shown.split(" ms ", 1)[1].startswith("▁▂▅ █ ")
    assert shown.endswith("p99 over 5.00 s of stimulus time")


def test_a_long_series_is_squeezed_keeping_the_worst() -> None:
    shown = sparkline(series([1] * 50 + [900] + [1] * 69), width=20)
    blocks = [letter for letter in shown if letter in "▁▂▃▄▅▆▇█"]
    assert len(blocks) == 20
    assert blocks.count("█") == 1


def test_steady_latency_is_a_flat_line_and_none_is_said() -> None:
    assert "▁▁▁" in sparkline(series([5, 5, 5]))
    assert sparkline(LatencySeries()) == "no results yet"


def labels(panel: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in panel.lines}


def predicted(report: JobReport) -> JobReport:
    """Return a report with a prediction over 60 s from its first result."""
    first_ns = START_NS // SECOND * SECOND
    spans = [
        PredictedSpan(start_ns=first_ns + n * SECOND, width_ns=SECOND, planned_ns=3 * SECOND)
        for n in range(60)
    ]
    made = PredictionReport(worst_ns=3 * SECOND, p99_ns=SECOND, mean_ns=SECOND, spans=spans)
    return replace(report, prediction=made)


def test_latency_has_the_deadline_within_its_panel() -> None:
    report = city_report(1_000)
    sinks = [replace(sink, deadline_ns=40 * SECOND) for sink in report.sinks]
    panel = latency_figure(replace(report, sinks=sinks)).axes[0]
    assert set(labels(panel)["deadline"].get_ydata()) == {40 * SECOND}
    assert panel.get_ylim()[1] > 40 * SECOND
    assert "deadline" not in labels(latency_figure(report).axes[0])


def test_a_panel_without_results_has_no_prediction() -> None:
    panel = latency_figure(predicted(city_report(0))).axes[0]
    assert [text.get_text() for text in panel.texts] == ["no results yet"]
    assert not panel.lines


def test_a_prediction_stands_only_where_results_left() -> None:
    report = predicted(city_report())
    gappy = [replace(report.sinks[0], series=series([5, 5, 0, 0, 0, 0, 5]))]
    panel = latency_figure(replace(report, sinks=gappy)).axes[0]
    drawn = labels(panel)["predicted"].get_ydata()
    assert np.isfinite(drawn[:7]).tolist() == [True, True, False, False, False, False, True]
    assert np.isnan(drawn[7:]).all()


def test_dots_are_large_enough_and_many_are_a_line() -> None:
    for seconds, is_line in ((30, False), (400, True)):
        report = city_report()
        sinks = [replace(report.sinks[0], series=series([5] * seconds))]
        panel = latency_figure(replace(report, sinks=sinks)).axes[0]
        most = labels(panel)["max"]
        assert (most.get_linestyle() == "-") == is_line
        assert is_line or most.get_markersize() >= 5


def test_titles_of_a_deadlines_panels_have_the_glossarys_words() -> None:
    tuning = with_deadline(city_report(), seconds=30).tuning
    assert tuning is not None
    titles = [panel.get_title(loc="left") for panel in deadline_figure(tuning, flow="city").axes]
    glossary = Path("docs/glossary.md").read_text(encoding="utf-8")
    for title, term in zip(titles, ("latency", "slack", "slack-ready", "late"), strict=False):
        assert title.startswith(term)
        assert f"| {term}" in glossary
    assert not any("[ssg]" in title for title in titles)

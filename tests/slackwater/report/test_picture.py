from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slackwater.report.deadline_picture import deadline_figure, draw_deadline
from slackwater.report.picture import draw_latency, sparkline
from slackwater.runtime.measure import JobReport, LatencySeries
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

from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console

from slackwater.report.latency_table import latency_json, latency_text
from slackwater.report.live_view import LiveView
from slackwater.report.render import plain_console, report_text
from slackwater.runtime.json_form import json_text
from slackwater.runtime.measure.recovered import Recovery
from slackwater.runtime.measure.report import JobReport, Standstill
from slackwater.runtime.model import END_NS, START_NS
from tests.support.reports import city_report, with_deadline


class Clock:
    def __init__(self) -> None:
        self.s = 0.0

    def now_s(self) -> float:
        return self.s


def lines_of(reports: list[JobReport], *, every_s: float) -> list[str]:
    file, clock = io.StringIO(), Clock()
    progress = LiveView(plain_console(file), now_s=clock.now_s)
    for report in reports:
        progress.update(report)
        clock.s += every_s
    progress.close()
    return file.getvalue().splitlines()


def running(rows: int, elapsed_s: float) -> JobReport:
    return city_report(rows, state="running", elapsed_s=elapsed_s)


def test_a_log_gets_a_line_every_two_seconds() -> None:
    assert len(lines_of([running(100, s / 2) for s in range(12)], every_s=0.5)) == 3


def test_rates_and_latencies_are_those_since_the_last_line() -> None:
    first, second = lines_of([running(1_000, 2.0), running(4_000, 4.0)], every_s=2.0)
    assert "1,000 events/s  in 2,000 results 100  latency p50 50.1 ms" in first
    assert "3,000 events/s  in 8,000 results 400" in second


def test_no_results_means_no_latency() -> None:
    assert "latency –" in lines_of([running(5, 2.0)], every_s=2.0)[0]


def test_a_gate_tells_how_far_it_is_behind_and_who_holds_it_back() -> None:
    report = running(1_000, 2.0)
    jams = report.stages[2]
    jams.newest_ns, jams.frontier_ns = 5_000_000_000, 3_300_000_000
    jams.waiting_for = ["buses", "loops", "trams", "ferries"]
    line = lines_of([report], every_s=2.0)[0]
    assert line.endswith("jams frontier 1.70 s behind, waits for buses, loops and 2 more")


def test_a_gate_before_its_first_promise_and_after_its_last_makes_no_claim() -> None:
    report = running(1_000, 2.0)
    jams = report.stages[2]
    assert lines_of([report], every_s=2.0)[0].endswith("jams has seen nothing yet")
    jams.newest_ns, jams.frontier_ns = 5, START_NS
    assert lines_of([report], every_s=2.0)[0].endswith("jams has no frontier yet")
    jams.frontier_ns = END_NS
    assert "jams" not in lines_of([report], every_s=2.0)[0]


def test_a_flow_with_a_deadline_tells_its_laxity_and_slacks() -> None:
    (line,) = lines_of([with_deadline(running(1_000, 2.0))], every_s=2.0)
    assert "laxity -1.00 s  slack jams 4.00 s" in line
    (line,) = lines_of([with_deadline(running(1_000, 2.0), seconds=0)], every_s=2.0)
    assert "laxity –  slack jams ready-only" in line


def test_a_terminal_is_redrawn_and_left_clean() -> None:
    file, clock = io.StringIO(), Clock()
    progress = LiveView(Console(file=file, force_terminal=True, width=100), now_s=clock.now_s)
    progress.say("starting node 1 of 3")
    for second in range(1, 4):
        clock.s = float(second)
        progress.update(running(1_000 * second, float(second)))
    progress.close()
    progress.close()
    assert "starting node 1 of 3" in file.getvalue()
    assert "2,000 events/s" in file.getvalue()
    assert file.getvalue().endswith("\x1b[2K"), "the live view is erased"


def test_a_job_that_stands_still_says_for_whom_and_what_to_do() -> None:
    still = Standstill(["alerts"], 42, 58, ["loops"], "'jams' waits for source 'loops'", "idle=")
    report = replace(running(1_000, 100.0), standstills=[still])
    (line,) = lines_of([report], every_s=2.0)
    assert line.endswith(
        "stands still: sink 'alerts' has had nothing for 42.0 s (since 58.0 s): 'jams' waits for "
        "source 'loops'. What to do: idle="
    )
    report.sinks[0].old_s = 42
    text = report_text(report)
    assert "stands still: sink 'alerts'" in text
    assert "42.0 s old" in text
    assert "42.0 s old" in latency_text(report)
    assert latency_json(report)["sinks"]["alerts"]["old_s"] == 42
    assert JobReport.from_json(json.loads(json_text(report.to_json()))).standstills == [still]


def test_a_recovery_is_printed_once_as_soon_as_it_is_known() -> None:
    file, clock = io.StringIO(), Clock()
    progress = LiveView(plain_console(file), now_s=clock.now_s)
    report = running(100, 1.0)
    progress.update(report)
    recovery = Recovery(1.4, "WorkerDied: its process 17 was killed", 3)
    for _ in range(2):  # both within the two seconds of a line
        progress.update(replace(report, recoveries=[recovery]))
    said = [line for line in file.getvalue().splitlines() if "went back" in line]
    assert said == [recovery.text]


def test_the_line_of_a_run_says_what_room_it_waits_for() -> None:
    report = running(100, 2.0)
    waits = "1 slot of lost nodes waits for a node with a free CPU"
    report.recoveries = [Recovery(1.4, "WorkerDied", 3, waits=waits)]
    assert lines_of([report], every_s=2.0)[-1].endswith(f"  {waits}")
    assert waits in " ".join(report_text(report).split())
    report.recoveries[0].waits = None
    assert waits not in lines_of([report], every_s=2.0)[-1]

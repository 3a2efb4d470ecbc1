from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from slackwater.report.kept import kept
from slackwater.report.ledger_text import ledger_line
from slackwater.report.render import render_report, report_text
from slackwater.report.tables import format_count, percent
from slackwater.runtime.measure.outcomes import LATE, SLACK_READY, Counts
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.shedding.counts import SheddingCounts
from tests.support.reports import SECOND, city_report, with_clocks, with_deadline, with_lost_rows

BOX_DRAWING = set("─│┌┐└┘├┤┬┴┼━┃╭╮╰╯═║")


def on_terminal(width: int) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=width, color_system="truecolor")
    render_report(city_report(), console)
    return file.getvalue()


def test_plain_text_is_100_columns_without_colour_or_boxes() -> None:
    long = city_report(20_000_000 // 10)
    long.stages[2].name = "congestion_of_buses_and_loops_in_the_same_area_within_5s"
    long.channels[0].name = "buses→congestion_of_buses_and_loops_in_the_same_area_within_5s" * 2
    long.sinks[0].target = "parquet " + "a/very/long/path" * 12
    text = report_text(long)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "\x1b" not in text
    assert not BOX_DRAWING & set(text)
    assert all(line == line.rstrip() for line in text.splitlines())


def test_figures_of_stages_that_shed_are_whole_at_80_columns() -> None:
    report = city_report()
    counts = SheddingCounts(latency_ns=SECOND, starts=3, shed=123_456, passed_over=98_765)
    for stage in report.stages[:2]:
        stage.shedding = counts
    file = io.StringIO()
    render_report(report, Console(file=file, width=80))
    lines = file.getvalue().splitlines()
    of_shed = {line.rpartition("  ")[0].split("  ")[0]: line for line in lines}
    assert of_shed["events shed"].split()[-2:] == ["123,456"] * 2
    assert of_shed["of these not looked at"].split()[-2:] == ["98,765"] * 2


def test_every_stage_shows_where_it_ran_what_passed_and_what_it_took() -> None:
    text = report_text(city_report())
    row = next(line.split() for line in text.splitlines() if line.startswith("jams "))
    assert row[:7] == ["jams", "join", "node-2", "node-2/0", "1,500", "100", "0.0667"]
    assert row[7:] == ["300", "ns", "40.0", "µs", "120", "ms", "0", "0"]


def test_each_sink_shows_its_latencies() -> None:
    text = report_text(city_report())
    row = next(line for line in text.splitlines() if line.startswith("alerts node-3"))
    assert row.split()[2:9] == ["100", "50.1", "ms", "99.1", "ms", "100", "ms"]


def test_channels_say_the_rate_of_promises_between_slots() -> None:
    report = city_report()
    assert "\nChannels\n" in report_text(report)
    report.elapsed_s = 2.0
    slots = {stage.name: stage.slot for stage in report.stages}
    assert len({slots[end] for c in report.channels for end in (c.source, c.target)}) > 1
    for channel in report.channels:
        channel.promises, channel.withheld = 10, 4_000
    between = sum(slots[c.source] != slots[c.target] for c in report.channels)
    assert report.promises_between_slots == (10 * between, 4_000 * between)
    title = f"Channels (promises between slots: {5 * between} a second alone, {2 * between},000 wit"
    assert title in report_text(report)


def test_a_sink_without_results_claims_no_latency() -> None:
    text = report_text(city_report(0))
    row = next(line for line in text.splitlines() if line.startswith("alerts node-3"))
    assert row.split()[2:7] == ["0", "–", "–", "–", "–"]


def test_what_the_clocks_leave_open_stands_beside_what_they_measured() -> None:
    text = report_text(with_clocks(city_report()))
    rows = {line.split(" ")[0]: line.split() for line in text.splitlines() if line}
    assert rows["alerts"][9:13] == ["100", "ms", "250", "µs"]
    assert rows["buses→jams"][-4:] == ["100", "µs", "100", "µs"]
    assert rows["jams→alerts"][-4:] == ["100", "µs", "350", "µs"]
    assert rows["node-1"] == ["node-1", "reference", "–", "–", "–", "0", "0"]
    assert rows["node-2"][1:7] == ["60.0", "min", "90.0", "µs", "100", "µs"]
    assert rows["node-3"][1:] == ["-2.00", "ms", "240", "µs", "250", "µs", "400", "µs", "67", "3"]
    assert max(len(line) for line in text.splitlines()) <= 100


def test_a_source_whose_clock_is_put_right_says_by_how_much() -> None:
    report = city_report()
    report.stages[0].source_clock = {
        "writers": 8,
        "smallest_offset_ns": -3_600 * 10**9,
        "largest_offset_ns": 2_000_000,
        "largest_bound_ns": 125_000,
        "jumps": 3,
    }
    report.stages[1].source_clock = {
        "writers": 1,
        "smallest_offset_ns": 5_000_000,
        "largest_offset_ns": 5_000_000,
    }
    text = report_text(report).partition("Clocks of sources")[2]
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert rows["buses"] == ["8", "-60.0", "min", "2.00", "ms", "125", "µs", "3"]
    assert rows["loops"] == ["1", "5.00", "ms", "5.00", "ms", "–", "–"]


def test_of_one_clock_nothing_is_said() -> None:
    report = city_report()
    report.clocks = with_clocks(report).clocks[:1]
    text = report_text(report)
    assert "Clocks" not in text
    assert "±" not in text


def test_gates_that_went_on_without_a_silent_source_name_it() -> None:
    report = city_report()
    assert "went on without" not in report_text(report)
    report.stages[2].idle_marks = {"buses": 2, "loops": 1}
    text = report_text(report)
    assert "went on without" in text.replace("\n", " ")
    assert "buses ×2, loops ×1" in text


def test_rows_that_a_join_let_go_too_soon_are_told() -> None:
    report = city_report()
    assert "too soon" not in report_text(report)
    report.stages[2].dropped_early = 123_456
    report.stages[2].held_back = {"loops": 7}
    assert "123,456" in report_text(report)
    again = JobReport.from_json(report.to_json()).stages[2]
    assert (again.dropped_early, again.held_back) == (123_456, {"loops": 7})


def test_the_ledger_line_gives_every_term_and_its_verdict() -> None:
    line = ledger_line(city_report()).plain
    said = "2,000 in = 1,497 out + 3 late + 500 filtered + 0 in flight; 100 results  balanced"
    assert said in line
    assert "2 came late and went on, 7 did not wait" in line


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (0.00123, "0.123 %"),
        (0.5, "50 %"),
        (0.9994, "99.9 %"),
        (0.9999999, "100 %"),
        (1.0, "100 %"),
        (15.678, "1,568 %"),
    ],
)
def test_a_share_is_told_without_powers_of_ten(share: float, text: str) -> None:
    assert percent(share, digits=2 if share != 0.00123 else 3) == text


def test_a_ledger_that_does_not_balance_says_by_how_many_and_where() -> None:
    text = report_text(with_lost_rows(city_report(), rows=4))
    assert "NOT BALANCED by 4" in text
    assert "stage 'jams' took 1,500 rows and accounts for 1,496" in text


def test_rows_in_flight_after_the_end_are_not_balanced() -> None:
    report = city_report()
    report.channels[2].rows_received -= 5
    report = replace(report, ledger=replace(report.ledger))
    assert "NOT BALANCED by 5" in ledger_line(report).plain
    assert "NOT BALANCED" not in ledger_line(replace(report, state="running")).plain


def test_latencies_below_zero_and_notes_are_told() -> None:
    report = city_report()
    report.sinks[0].latency.add(np.array([-1, -2]))
    text = report_text(report)
    assert "note: three nodes simulated on one machine" in text
    assert "note: sink 'alerts': 2 latencies were below zero" in text


def test_refused_peers_are_told() -> None:
    report = city_report()
    assert "refused" not in report_text(report)
    report.refused_peers = 1_234
    told = " ".join(report_text(report).split())
    assert "1,234 connections to this job's sockets were refused" in told
    assert JobReport.from_json(report.to_json()).refused_peers == 1_234


def test_a_deadline_tells_how_it_was_kept_and_what_that_cost_in_order() -> None:
    text = report_text(with_deadline(city_report()))
    assert "Deadline 6.00 s: kept in 329 of 330 seconds (sltuner)" in text
    row = next(line for line in text.splitlines() if line.startswith("jams ") and "climb" in line)
    assert row.split() == ["jams", "4.00", "s", "climb", "18", "1.2", "%", "5", "0"]
    assert "a second counts by the sum of its stages' worst: p50 5.0" in text
    assert "Deadline" not in report_text(city_report())


def test_what_is_counted_in_other_intervals_than_seconds_is_said_so() -> None:
    assert kept(TuningReport(SECOND, "mine", seconds=4, over=1)).startswith(
        "kept in 3 of 4 seconds"
    )
    halves = TuningReport(SECOND, "mine", seconds=4, over=1, interval_ns=SECOND // 2)
    assert kept(halves) == "kept in 3 of 4 intervals of 500 ms (mine)"


def test_the_share_of_results_in_time_is_counted_one_by_one_and_never_rounded_up() -> None:
    report = with_deadline(city_report())
    first, second = replace(report.sinks[0], name="all"), replace(report.sinks[0], name="some")
    first.deadline_ns = second.deadline_ns = 6 * 10**9
    first.rows, first.in_time, second.rows, second.in_time = 60_000, 60_000, 40_000, 39_999
    report = replace(report, sinks=[first, second])
    text = report_text(report)
    assert "Deadline 6.00 s: 99.99 % of 100,000 results in time; kept in 329 of 330 seconds" in text
    row = next(line for line in text.splitlines() if line.startswith("some "))
    assert "39,999" in row.split()
    second.in_time = 40_000
    assert "Deadline 6.00 s: all 100,000 results in time" in report_text(report)
    plain = report.to_json()
    assert plain["results_in_time"] == {"in_time": 100_000, "rows": 100_000}
    assert JobReport.from_json(plain).results_in_time == (100_000, 100_000)


def test_before_the_first_second_is_over_a_deadline_claims_nothing() -> None:
    report = with_deadline(city_report(), seconds=0)
    assert report.tuning is not None
    text = report_text(report)
    assert "Deadline 6.00 s: no second is over yet (sltuner)" in text
    assert "jams ready-only not set yet" in text
    assert "stages' worst" not in text
    report.tuning.status = {"fits": 3, "failures": {}, "seconds": {"safe rule": 30, "model": 9}}
    assert "sltuner: fits 3, seconds (safe rule 30, model 9)\n" in report_text(report)


def test_the_error_of_a_failed_run_is_shown() -> None:
    assert "worker node-2 died" in report_text(
        replace(city_report(state="failed"), error="worker node-2 died")
    )


def test_the_report_of_a_failed_run_ends_with_what_it_heard_last() -> None:
    heard = ["3.210 slot 'node-2' died: its process was killed", "3.400 the cluster answers"]
    given = ["3.100 slot 'node-2': 12 rows came on channel 'buses→jams'"]
    failed = replace(city_report(state="failed"), job_events=heard, slot_events=given)
    assert report_text(failed).splitlines()[-3:] == [f"heard at {one}" for one in heard + given]
    assert not any("heard" in line for line in report_text(city_report()).splitlines())
    again = JobReport.from_json(failed.to_json())
    assert (again.job_events, again.slot_events) == (heard, given)


def test_names_that_look_like_markup_are_shown_as_they_are() -> None:
    report = city_report()
    report.stages[0].name = "[red]buses[/red]"
    report.flow = "[bold]:bus:"
    text = report_text(report)
    assert "[red]buses[/red]" in text
    assert "[bold]:bus:" in text


def test_a_narrow_terminal_gets_two_tables_and_a_wide_one_gets_one() -> None:
    assert "Work and waiting" in on_terminal(80)
    assert "Work and waiting" not in on_terminal(120)
    assert "\x1b[" in on_terminal(120)


def test_counts_keep_to_eight_characters() -> None:
    shown = [format_count(rows) for rows in (0, 999_999, 12_345_678, 3e9, 5e15)]
    assert shown == ["0", "999,999", "12.35 M", "3.00 G", "5.0e+15"]


def test_what_gates_relaxed_is_said_of_the_gates_for_two_of_them_count_a_row_twice() -> None:
    report = city_report()
    counts = Counts(report.ledger.counts)
    counts[LATE], counts[SLACK_READY] = 3, 2 * report.ledger.entered
    relaxed = replace(report.ledger, counts=counts)
    told = ledger_line(replace(report, ledger=relaxed)).plain
    assert "at the gates, 3 came late and went on, " in told
    assert "of those out" not in told

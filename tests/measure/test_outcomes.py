"""A word for what becomes of rows: added in one place, it counts, balances and is told in all."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import fields, replace

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.report.render import report_text
from slackwater.runtime.measure import outcomes
from slackwater.runtime.measure.assemble import job_report
from slackwater.runtime.measure.balance import Ledger
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.measure.outcomes import (
    IN_FLIGHT,
    LATE,
    READY,
    Counts,
    LedgerPlace,
    Outcome,
    at_stages,
    of_jobs,
    registered,
)
from slackwater.runtime.measure.report import ChannelReport, JobReport, StageReport
from slackwater.runtime.model import Message
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.schedule.stage import StageMachine
from tests.support.told import message_of

N = 10


@pytest.fixture
def skimmed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Outcome]:
    """A made-up word, known for the length of a test."""
    monkeypatch.setattr(outcomes, "_known", dict(outcomes._known))
    return registered(Outcome("skimmed", LedgerPlace.LEFT_OUT, "Left out, for there was too much."))


class Shedding(StageMachine):
    """A stage that takes three rows of each message and sheds the others."""

    word: Outcome

    def deliver(self, channel: str, message: Message, now_ns: int, *, link_ns: int = 0) -> None:
        taken = message
        if message.batch is not None:
            taken = message_of(
                message.batch.slice(0, 3), message.progress.promise_ns, message.progress.stimulus_ns
            )
        super().deliver(channel, taken, now_ns, link_ns=link_ns)
        self.report.rows_in += message.rows - taken.rows
        self.report.counts[self.word] += message.rows - taken.rows


def plan() -> Plan:
    flow = sw.Dataflow("shedding")
    rows = pa.table({"ts": pa.array(range(N), pa.int64())})
    flow.source("feed", sw.table(rows), event_time="ts").sink("out", sw.collect_sink())
    return place(flow.name, plan_stages(flow.graph), ["a"])


def shedding_report(word: Outcome, *, lost: int = 0) -> JobReport:
    """Ten rows to a sink that takes three, sheds seven, and counts all but `lost` of them."""
    of = plan()
    feed, out = of.stages
    source, sink = StageMachine(feed, start_ns=0), Shedding(out, start_ns=0)
    sink.word = word
    channel = ChannelReport(feed.outputs[0].name, "feed", "out")
    while not source.is_finished:
        for _, part in source.work(0, max_rows=100).sends:
            channel.rows_sent += part.rows
            channel.rows_received += part.rows
            sink.deliver(channel.name, part, 0)
    while not sink.is_finished:
        sink.work(0, max_rows=100)
    sink.report.counts[word] -= lost
    return job_report(
        of,
        state="done",
        host="simulator",
        nodes=["a"],
        elapsed_s=1.0,
        stages=[source.report_at(0), sink.report_at(0)],
        channels=[channel],
        sinks=[],
    )


def test_a_new_word_counts_in_the_balance_of_its_stage_and_of_the_job(skimmed: Outcome) -> None:
    report = shedding_report(skimmed)
    sink = report.stages[1]
    assert (sink.rows_in, sink.used, sink.counts[skimmed]) == (N, 3, 7)
    assert sink.is_balanced
    assert (report.ledger.out, report.ledger.counts[skimmed]) == (3, 7)
    assert report.ledger.is_balanced
    assert imbalances(report) == []


def test_a_new_word_is_in_the_json_and_comes_back_from_it(skimmed: Outcome) -> None:
    report = shedding_report(skimmed)
    plain = report.to_json()
    assert plain["stages"][1]["skimmed"] == plain["ledger"]["skimmed"] == 7
    again = JobReport.from_json(plain)
    assert again.stages[1].counts[skimmed] == again.ledger.counts[skimmed] == 7
    assert again.to_json() == plain


def test_a_new_word_is_printed_where_it_was_counted(skimmed: Outcome) -> None:
    report = shedding_report(skimmed)
    text = report_text(report)
    said = "10 in = 3 out + 0 late + 7 skimmed + 0 filtered + 0 in flight; 0 results  balanced"
    assert said in text
    header = next(line for line in text.splitlines() if "in order" in line)
    assert "skimmed" in header
    assert str(report.ledger) in text
    none = replace(report, stages=report.stages[:1], channels=[], ledger=Ledger(0, 0, Counts()))
    assert "skimmed" not in report_text(none).replace("shedding", "")


def test_a_new_word_is_named_where_a_stage_does_not_balance(skimmed: Outcome) -> None:
    assert imbalances(shedding_report(skimmed, lost=2)) == [
        "stage 'out' took 10 rows and accounts for 8 (3 in order; 5 skimmed)",
        "2 events entered and are not accounted for",
    ]


def test_rows_of_any_word_that_are_still_here_unbalance_a_job_that_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outcomes, "_known", dict(outcomes._known))
    parked = registered(Outcome("parked", LedgerPlace.HERE, "Waits for its turn.", term="parked"))
    counted = Counts({outcomes.OUT: 8, parked: 2})
    ledger = Ledger(10, 0, counted)
    assert ledger.is_balanced
    assert not replace(ledger, is_final=True).is_balanced
    report = replace(shedding_report(READY), ledger=ledger)
    assert "2 events are parked after the end" in imbalances(report)


def test_a_word_that_is_taken_is_refused(skimmed: Outcome) -> None:
    for taken in ("skimmed", "late_used"):
        with pytest.raises(ValueError, match=f"there is an outcome '{taken}' already"):
            registered(Outcome(taken, skimmed.place, "The same again."))


def test_no_word_is_a_field_of_the_reports_whose_json_it_is_in() -> None:
    of_stage, of_job = ({one.name for one in fields(kind)} for kind in (StageReport, Ledger))
    assert not of_stage & {one.name for one in at_stages()}
    assert not of_job & {one.of_job for one in of_jobs()}


def test_counts_are_equal_whatever_was_never_counted_and_survive_a_process() -> None:
    counts = Counts({READY: 3, LATE: 0})
    assert counts == Counts({READY: 3})
    assert counts != Counts({READY: 3, IN_FLIGHT: 1})
    report = StageReport("out", "sink", "a", "a/0", rows_in=3, counts=counts)
    again = pickle.loads(pickle.dumps(report))  # noqa: S301 - our own
    assert again == report
    assert again.counts[READY] == again.ready == 3


def test_a_stage_and_a_ledger_as_they_were_written_before_words_were_open_are_read() -> None:
    stage = {
        "name": "jams",
        "kind": "join",
        "node": "a",
        "slot": "a/0",
        "rows_in": 21,
        "ready": 1,
        "slack_ready": 2,
        "late": 3,
        "late_dropped": 4,
        "filtered": 5,
        "in_flight": 11,
        "balanced": True,
    }
    read = StageReport.from_json(stage)
    assert (read.ready, read.slack_ready, read.late, read.late_dropped) == (1, 2, 3, 4)
    assert (read.filtered, read.in_flight, read.is_balanced) == (5, 11, True)
    ledger = Ledger.from_json(
        {
            "entered": 20,
            "copies": 1,
            "out": 6,
            "late": 4,
            "filtered": 5,
            "in_flight": 6,
            "late_used": 3,
            "slack_ready": 2,
            "is_final": False,
            "balanced": True,
        }
    )
    assert (ledger.out, ledger.late, ledger.filtered, ledger.in_flight) == (6, 4, 5, 6)
    assert (ledger.late_used, ledger.slack_ready, ledger.is_balanced) == (3, 2, True)
    assert {*ledger.to_json()} == {
        *("entered", "copies", "out", "late", "filtered", "in_flight"),
        *("late_used", "slack_ready", "is_final", "results", "untold", "unreported"),
        *(
            "duplicate",
            "given_up",
            "shed",
            "bad_time",
            "unreadable",
            "failed",
            "beyond_limit",
            "combined",
            "diverted",
        ),
        *("forgotten", "balanced"),
    }

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from benchmarks.espice.rivals import random_shedding
from slackwater.report.ledger_text import ledger_line
from slackwater.runtime.errors import LedgerError
from slackwater.runtime.measure.assemble import job_report
from slackwater.runtime.measure.balance import Ledger
from slackwater.runtime.measure.ledger import imbalances, ledger_of, refuse_imbalance
from slackwater.runtime.measure.outcomes import OUT, SHED, Counts
from slackwater.runtime.measure.report import ChannelReport, JobReport, StageReport
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.shedding.settings import Drops


def stage(name: str, kind: str, rows_in: int, **more: int) -> StageReport:
    """A stage that used all its rows in order, but for what `more` says."""
    passes_on = kind in ("source", "stateless", "merge")
    made = StageReport(name, kind, "node-1", "node-1/0", passes_on=passes_on, rows_in=rows_in)
    for key, value in more.items():
        setattr(made, key, value)
    other = made.slack_ready + made.late + made.late_dropped + made.in_flight
    made.ready = more.get("ready", rows_in - other)
    made.rows_out = more.get("rows_out", made.used - made.filtered)
    return made


def channel(source: str, target: str, sent: int, received: int | None = None) -> ChannelReport:
    got = sent if received is None else received
    return ChannelReport(f"{source}→{target}", source, target, sent, got)


def test_an_event_counts_once_at_the_join_however_many_stages_it_passes() -> None:
    # buses 100 ─ clean (30 filtered) ─┐
    #                                  jams ─ 7 pairs ─ alerts
    # loops 50 ────────────────────────┘
    found = ledger_of(
        [
            stage("buses", "source", 100),
            stage("loops", "source", 50),
            stage("clean", "stateless", 100, filtered=30),
            stage("jams", "join", 120, rows_out=7),
            stage("alerts", "sink", 7),
        ],
        [
            channel("buses", "clean", 100),
            channel("clean", "jams", 70),
            channel("loops", "jams", 50),
            channel("jams", "alerts", 7),
        ],
    )
    assert (found.entered, found.copies, found.out, found.filtered) == (150, 0, 120, 30)
    assert found.is_balanced


def test_what_the_join_makes_and_filters_is_not_a_source_event() -> None:
    found = ledger_of(
        [
            stage("buses", "source", 10),
            stage("jams", "join", 10, rows_out=990, filtered=10),
            stage("out", "sink", 990, late_dropped=4),
        ],
        [channel("buses", "jams", 10), channel("jams", "out", 990)],
    )
    assert (found.out, found.filtered, found.late) == (10, 0, 0)
    assert found.is_balanced


def test_a_stream_that_feeds_two_stages_is_followed_into_each() -> None:
    found = ledger_of(
        [stage("buses", "source", 10), stage("raw", "sink", 10), stage("mean", "aggregate", 10)],
        [channel("buses", "raw", 10), channel("buses", "mean", 10)],
    )
    assert (found.entered, found.copies, found.out) == (10, 10, 20)
    assert found.is_balanced


def test_a_join_with_itself_takes_each_event_twice() -> None:
    both = [replace(channel("buses", "pairs", 10), name=f"buses→pairs:{port}") for port in (1, 2)]
    found = ledger_of([stage("buses", "source", 10), stage("pairs", "join", 20)], both)
    assert (found.copies, found.out) == (10, 20)
    assert found.is_balanced


def test_a_merge_passes_source_events_on() -> None:
    found = ledger_of(
        [
            stage("a", "source", 10, late_dropped=1),
            stage("b", "source", 20),
            stage("both", "merge", 29, late=2, slack_ready=5, filtered=3),
            stage("out", "sink", 26),
        ],
        [channel("a", "both", 9), channel("b", "both", 20), channel("both", "out", 26)],
    )
    assert (found.entered, found.out, found.late, found.filtered) == (30, 26, 1, 3)
    assert (found.late_used, found.slack_ready) == (2, 5), "a merge relaxes as a join does"
    assert found.is_balanced


def test_late_rows_are_told_apart_by_whether_they_were_used() -> None:
    found = ledger_of(
        [
            stage("a", "source", 100),
            stage("mean", "aggregate", 100, late=4, late_dropped=6, slack_ready=20),
        ],
        [channel("a", "mean", 100)],
    )
    assert (found.out, found.late, found.late_used, found.slack_ready) == (94, 6, 4, 20)
    assert found.is_balanced


def test_rows_are_in_flight_in_queues_on_wires_and_before_a_channel_without_credit() -> None:
    found = ledger_of(
        [
            stage("a", "source", 100, in_flight=5, rows_out=95),  # 15 of them not sent yet
            stage("mean", "aggregate", 70, in_flight=30),
        ],
        [channel("a", "mean", 80, 70)],
    )
    assert (found.out, found.in_flight) == (40, 5 + 15 + 10 + 30)
    assert found.is_balanced


def test_a_second_join_counts_the_source_events_and_not_the_pairs_it_takes() -> None:
    # a ─┐
    #    first ─ 500 pairs ─┐
    # b ─┘                  second      c's 30 come out here, the pairs are new events
    # c ────────────────────┘
    stages = [
        stage("a", "source", 10),
        stage("b", "source", 20),
        stage("c", "source", 30),
        stage("first", "join", 30, rows_out=500),
        stage("second", "join", 530, late_dropped=7, in_flight=11),
    ]
    channels = [
        channel("a", "first", 10),
        channel("b", "first", 20),
        channel("first", "second", 500),
        channel("c", "second", 30),
    ]
    found = ledger_of(stages, channels)
    assert (found.entered, found.late, found.in_flight, found.out) == (60, 7, 11, 30 + 12)
    assert found.is_balanced


def test_a_merge_of_source_events_with_pairs_ends_the_source_side() -> None:
    found = ledger_of(
        [
            stage("a", "source", 10),
            stage("pairs", "join", 10, rows_out=70),
            stage("b", "source", 5),
            stage("all", "merge", 75),
            stage("out", "sink", 75),
        ],
        [
            channel("a", "pairs", 10),
            channel("pairs", "all", 70),
            channel("b", "all", 5),
            channel("all", "out", 75),
        ],
    )
    assert (found.entered, found.out) == (15, 15)
    assert found.is_balanced


@pytest.mark.parametrize("lost_in", ["source", "merge", "join"])
def test_a_row_lost_inside_a_stage_unbalances_the_ledger(lost_in: str) -> None:
    stages = [
        stage("a", "source", 10),
        stage("all", "merge", 10),
        stage("pairs", "join", 10),
    ]
    channels = [channel("a", "all", 10), channel("all", "pairs", 10)]
    lossy = next(one for one in stages if one.kind == lost_in)
    lossy.ready -= 1
    if lost_in != "join":
        lossy.rows_out -= 1
        for behind in channels[stages.index(lossy) :]:
            behind.rows_sent -= 1
            behind.rows_received -= 1
        for one in stages[stages.index(lossy) + 1 :]:
            one.rows_in, one.ready, one.rows_out = 9, 9, 9
    found = ledger_of(stages, channels)
    assert found.missing == 1
    assert not found.is_balanced


def test_a_stage_that_died_unheard_leaves_its_rows_missing() -> None:
    found = ledger_of([stage("a", "source", 10)], [channel("a", "gone", 10, 8)])
    assert (found.in_flight, found.missing) == (2, 8)


def test_rows_taken_from_a_source_that_died_unheard_were_sent() -> None:
    found = ledger_of(
        [
            stage("a", "source", 0),
            stage("b", "source", 0),
            stage("both", "merge", 32_640, in_flight=24_577),
            stage("res", "sink", 8_063),
        ],
        [
            channel("a", "both", 0, 16_320),
            channel("b", "both", 0, 16_320),
            channel("both", "res", 8_063),
        ],
    )
    assert (found.entered, found.out, found.in_flight) == (32_640, 8_063, 24_577)
    assert found.untold == 32_640
    assert not found.is_balanced
    assert str(found).startswith("at least 32,640 in = 8,063 out + ")


def test_a_slot_that_ended_without_a_report_leaves_the_rows_unknown() -> None:
    known = ledger_of([stage("a", "source", 10), stage("out", "sink", 10)], [])
    found = replace(known, counts=Counts({OUT: 10}), unreported=("node-1",))
    assert found.missing == 0
    assert not found.is_balanced
    assert str(found).startswith("at least 10 in = 10 out")
    assert Ledger.from_json(found.to_json()) == found


counts_in_turn = st.lists(st.integers(0, 100), min_size=4, max_size=4).map(sorted)


@given(counts_in_turn, counts_in_turn, st.sampled_from([1, 2]))
def test_no_death_makes_a_count_negative_or_a_balance_of_what_is_not_known(
    old: list[int], later: list[int], readers: int
) -> None:
    """A source, a merge and sinks, each with its report of a moment: [taken, …, sent] falls."""
    sunk, merged_out, merged_in, sent = (max(pair) for pair in zip(old, later, strict=True))
    source_told, merge_took, merge_gave = old[3], old[2], min(old[2], old[1])
    sinks = [f"out-{number}" for number in range(readers)]
    found = ledger_of(
        [
            stage("a", "source", source_told),
            stage("both", "merge", merge_took, in_flight=merge_took - merge_gave),
            *(stage(name, "sink", sunk) for name in sinks),
        ],
        [
            channel("a", "both", source_told, merge_took),
            *(channel("both", name, merge_gave, sunk) for name in sinks),
        ],
    )
    assert min(found.in_flight, found.out, found.copies) >= 0
    assert found.missing == 0, found
    assert sunk <= found.entered <= max(sent, merged_in, merged_out, sunk)
    assert found.is_balanced == (merge_took <= source_told and sunk <= merge_gave)


def test_a_source_that_was_never_heard_is_told_of_by_what_was_taken_from_it() -> None:
    flow = sw.Dataflow("f")
    table = sw.table({"ts": [1], "n": [1]})
    flow.source("a", table, event_time="ts", time_unit="ms").sink("out", sw.collect_sink())
    report = job_report(
        place("f", plan_stages(flow.graph), ["node-1"]),
        state="failed",
        host="ray",
        nodes=["node-1"],
        elapsed_s=1.0,
        stages=[stage("out", "sink", 8)],
        channels=[channel("a", "out", 0, 8)],
        sinks=[],
    )
    assert report.ledger.balance.startswith("at least 8 in = 8 out + ")
    assert "'a' ended before it could report its last rows: 8 more" in report.notes[0]
    assert "not known: 8 taken" in ledger_line(report).plain
    assert JobReport.from_json(report.to_json()).ledger == report.ledger


def test_a_flow_without_rows_balances() -> None:
    assert ledger_of([stage("a", "source", 0)], []).is_balanced


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3)), min_size=1, max_size=5),
    st.data(),
)
def test_any_run_whose_stages_balance_has_a_balanced_ledger(
    sources: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Sources, each with its own filter, late rows and a rest on the wire, into 1-3 readers."""
    stages: list[StageReport] = []
    channels: list[ChannelReport] = []
    arrived = {"join": 0, "aggregate": 0, "sink": 0}
    for number, (rows_in, readers) in enumerate(sources):
        late = data.draw(st.integers(0, rows_in))
        filtered = data.draw(st.integers(0, rows_in - late))
        name = f"source-{number}"
        stages.append(stage(name, "source", rows_in, late_dropped=late, filtered=filtered))
        for kind in list(arrived)[: max(readers, 1)]:
            left = stages[-1].rows_out
            received = data.draw(st.integers(0, left))
            channels.append(channel(name, kind, left, received))
            arrived[kind] += received
    for kind, rows in arrived.items():
        late = data.draw(st.integers(0, rows))
        held = data.draw(st.integers(0, rows - late))
        stages.append(stage(kind, kind, rows, late_dropped=late, in_flight=held))
    found = ledger_of(stages, channels)
    assert found.is_balanced, found
    assert min(found.copies, found.out, found.late, found.filtered, found.in_flight) >= 0


def report_of(stages: list[StageReport], channels: list[ChannelReport], state: str) -> JobReport:
    ledger = ledger_of(stages, channels)
    return JobReport("city", state, "ray", ["node-1"], 1.0, stages, channels, [], ledger)


def test_rows_in_flight_are_fine_in_a_running_job_and_lost_in_one_that_is_done() -> None:
    parts = [stage("a", "source", 10), stage("out", "sink", 8)], [channel("a", "out", 10, 8)]
    assert imbalances(report_of(*parts, state="running")) == []
    assert imbalances(report_of(*parts, state="done")) == [
        "channel 'a→out' was sent 10 rows and delivered 8",
        "2 events are in flight after the end",
    ]


def test_a_job_that_is_done_with_rows_in_flight_is_an_error_and_never_balanced() -> None:
    parts = [stage("a", "source", 10), stage("out", "sink", 8)], [channel("a", "out", 10, 8)]
    running = report_of(*parts, state="running")
    assert running.ledger.is_balanced
    assert refuse_imbalance(running) is running
    done = report_of(*parts, state="done")
    done.ledger = replace(done.ledger, is_final=True)
    assert not done.ledger.is_balanced
    assert not done.to_json()["ledger"]["balanced"]
    with pytest.raises(LedgerError, match=r"flow 'city' is done, .*2 events are in flight"):
        refuse_imbalance(done)


def test_an_imbalance_names_its_stage() -> None:
    lossy = stage("out", "sink", 10, ready=9)
    found = imbalances(
        report_of([stage("a", "source", 10), lossy], [channel("a", "out", 10)], "done")
    )
    assert found == [
        "stage 'out' took 10 rows and accounts for 9 (9 in order)",
        "1 events entered and are not accounted for",
    ]


def test_a_report_survives_json() -> None:
    report = report_of([stage("a", "source", 3)], [channel("a", "out", 3)], "done")
    plain = report.to_json()
    assert JobReport.from_json(plain).to_json() == plain


def shared(
    share: str, *, received: tuple[int, int]
) -> tuple[list[StageReport], list[ChannelReport]]:
    """100 events through a gate, 10 of them late there, to two replicas of a join."""
    gate = stage("jams.gate", "gate", 100, slack_ready=30, late=10)
    gate.share = share
    first, second = (
        stage(f"jams.{n}", "join", rows, late=3, late_dropped=2, rows_out=5)
        for n, rows in enumerate(received, start=1)
    )
    sent = (100, 100) if share == "all" else (60, 40)
    stages = [stage("buses", "source", 100), gate, first, second, stage("out", "sink", 10)]
    channels = [
        channel("buses", "jams.gate", 100),
        channel("jams.gate", "jams.1", sent[0], received[0]),
        channel("jams.gate", "jams.2", sent[1], received[1]),
        channel("jams.1", "out", 5),
        channel("jams.2", "out", 5),
    ]
    return stages, channels


def test_a_gate_and_replicas_that_share_by_keys_count_each_event_once() -> None:
    found = ledger_of(*shared("keys", received=(60, 33)))
    assert (found.entered, found.copies, found.late, found.in_flight) == (100, 0, 4, 7)
    assert (found.out, found.slack_ready, found.late_used) == (89, 30, 6)
    assert found.is_balanced


def test_a_gate_and_replicas_that_share_all_count_each_event_once() -> None:
    found = ledger_of(*shared("all", received=(90, 100)))
    assert (found.entered, found.copies, found.late, found.in_flight) == (100, 0, 2, 10)
    assert (found.out, found.slack_ready, found.late_used) == (88, 30, 8)
    assert found.is_balanced


def test_rows_that_a_gate_deals_to_nobody_are_missing() -> None:
    stages, channels = shared("keys", received=(60, 40))
    channels[2].rows_sent = channels[2].rows_received = 35
    lost = stage("jams.2", "join", 35, late=3, late_dropped=2)
    found = ledger_of([lost if s.name == "jams.2" else s for s in stages], channels)
    assert found.missing == 5


@pytest.mark.parametrize(("drops", "each_ns"), [("pairs", 10_000), ("events", 100_000)])
def test_what_replicas_shed_is_shed_in_the_ledger_and_did_not_come_out(
    drops: Drops, each_ns: int
) -> None:
    events = pa.table(
        {
            "ts": np.arange(20_000) * 20_000,
            "kind": np.arange(20_000) % 4,
            "key": np.arange(20_000) // 4 % 7,
        }
    )
    flow = sw.Dataflow("overload")
    source = flow.source("events", sw.table(events), event_time="ts", time_unit="ns", speed=1.0)
    first, then = sw.patterns.event("first", of_type=0), sw.patterns.event("then", of_type=1)
    source.key_by("key").pattern(
        sw.patterns.seq(first, then),
        type="kind",
        window=sw.patterns.opened_by(first, events=40),
        matches=1,
        shed=random_shedding("50ms", drops=drops),
        replicas=2,
    ).sink("out", sw.collect_sink())
    costs = sw.testing.CostModel(per_row_ns=0, per_slice_ns=0, per_comparison_ns=each_ns)
    report = sw.Simulation(nodes=2, cost=costs).submit(flow).wait()
    assert report.state == "done", report.error
    shed = sum(stage.shedding.shed for stage in report.stages if stage.shedding is not None)
    assert shed > 0
    assert report.ledger.counts[SHED] == shed
    assert report.ledger.out + shed == len(events)
    assert not imbalances(report)
    assert not any(stage.shedding.reason for stage in report.stages if stage.shedding is not None)
    assert JobReport.from_json(report.to_json()).to_json() == report.to_json()


def test_what_a_join_makes_are_results_beside_the_events_that_reached_it() -> None:
    flow = sw.Dataflow("pairs")
    rows = sw.table(pa.table({"ts": [1, 1, 2], "k": [1, 1, 2]}))
    one, other = (flow.source(name, rows, event_time="ts", time_unit="s") for name in "ab")
    pairs = one.filter(sw.col("k") == 1).join(other, on="k", within="1s")
    pairs.sink("out", sw.collect_sink())
    job = sw.Simulation().submit(flow)
    report = job.wait()
    assert (report.ledger.out, report.ledger.results) == (5, job.result("out").num_rows) == (5, 4)
    assert str(report.ledger).endswith("= 5 out + 0 late + 1 filtered + 0 in flight; 4 results")
    plain = report.to_json()
    assert JobReport.from_json(plain).ledger == report.ledger
    del plain["ledger"]["results"]  # of an older version
    assert str(JobReport.from_json(plain).ledger).endswith("+ 0 in flight")

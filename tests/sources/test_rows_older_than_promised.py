"""Rows that are older than their source had promised: every way there is, and what it is called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.report.ledger_text import ledger_line
from slackwater.runtime.errors import OrderError
from slackwater.runtime.model import START_NS
from slackwater.runtime.order.aq_k_slack import aq_k_slack
from slackwater.runtime.order.k_slack import k_slack, mp_k_slack
from slackwater.runtime.order.ldop import ldop
from slackwater.runtime.order.sequence import by_sequence
from slackwater.runtime.plan.flow_fingerprints import flow_fingerprints
from slackwater.runtime.plan.promises import of_source
from slackwater.runtime.sources.spec import SourceSpec
from tests.support.sources import drain, machine, take, times

IN_ORDER: dict[str, dict[str, Any]] = {
    "as it is": {},
    "late": {"out_of_order": "late"},
    "late, disorder": {"out_of_order": "late", "disorder_ns": 5},
    "sort": {"out_of_order": "sort", "disorder_ns": 5},
    "error, disorder": {"disorder_ns": 5},
    "writers": {"writer": "w", "out_of_order": "late"},
    "writers, disorder": {"writer": "w", "out_of_order": "late", "disorder_ns": 5},
    "writers, sort": {"writer": "w", "out_of_order": "sort", "disorder_ns": 5},
    "promise": {"promise": sw.col("p"), "out_of_order": "late"},
    "promise, sort": {"promise": sw.col("p"), "out_of_order": "sort", "disorder_ns": 5},
    "promise, writers": {"promise": sw.col("p"), "writer": "w", "out_of_order": "late"},
    "ahead": {"arrival": "a", "ahead_ns": 3, "out_of_order": "late"},
    "ahead, no arrivals": {"ahead_ns": 2, "out_of_order": "late"},
    "ahead, writers, no arrivals": {
        "ahead_ns": 2,
        "writer": "w",
        "out_of_order": "late",
        "disorder_ns": 4,
    },
    "ahead, writers": {
        "arrival": "a",
        "ahead_ns": 3,
        "writer": "w",
        "out_of_order": "late",
        "disorder_ns": 4,
    },
    "clock": {"clock": sw.clocks.clock_columns("o", unit="ns"), "out_of_order": "late"},
    "clock, promise": {
        "clock": sw.clocks.clock_columns("o", unit="ns"),
        "promise": sw.col("p"),
        "out_of_order": "late",
    },
    "k": {"out_of_order": k_slack("4ns")},
    "mp-k": {"out_of_order": mp_k_slack()},
    "aq-k": {"out_of_order": aq_k_slack(window="20ns", coverage=0.8)},
    "ldop": {"out_of_order": ldop(window="3ns")},
    "k, writers": {"out_of_order": k_slack("4ns"), "writer": "w"},
    "numbers": {"sequence": "n", "arrival": "a", "out_of_order": by_sequence(timeout="6ns")},
    "numbers, merged": {
        "sequence": "n",
        "arrival": "a",
        "writer": "w",
        "out_of_order": by_sequence(timeout="6ns", merge=True),
    },
}
LATE: dict[str, dict[str, Any]] = {
    "idle writers": {"writer": "w", "idle_ns": 5, "arrival": "a", "out_of_order": "late"},
    "k": {"out_of_order": k_slack("4ns", late="pass")},
    "mp-k": {"out_of_order": mp_k_slack(late="pass")},
    "aq-k": {"out_of_order": aq_k_slack(window="20ns", coverage=0.8, late="pass")},
    "ldop": {"out_of_order": ldop(window="3ns", late="pass")},
    "k, promise": {"out_of_order": k_slack("4ns", late="pass"), "promise": sw.col("p")},
    "numbers": {
        "sequence": "n",
        "arrival": "a",
        "out_of_order": by_sequence(timeout="6ns", late="pass"),
    },
    "numbers, silent writers": {
        "sequence": "n",
        "arrival": "a",
        "writer": "w",
        "out_of_order": by_sequence(timeout="6ns", silent="4ns"),
    },
    "numbers, merged": {
        "sequence": "n",
        "arrival": "a",
        "writer": "w",
        "out_of_order": by_sequence(timeout="6ns", merge=True, late="pass"),
    },
}


def rows(seed: int) -> pa.Table:
    """60 rows of three writers, up to 12 ns late; clocks and promises are off now and then."""
    rng = np.random.default_rng(seed)
    writers = rng.integers(0, 3, 60)
    times = 100 + np.cumsum(rng.integers(0, 3, 60))
    arrivals = times + rng.integers(0, 12, 60) * (rng.random(60) < 0.4)
    order = np.argsort(arrivals, kind="stable")
    numbers = np.array([np.count_nonzero(writers[:at] == one) for at, one in enumerate(writers)])
    off = rng.integers(-3, 4, 60) * (rng.random(60) < 0.3)
    columns = {
        "t": times - off,
        "p": times - 8 + 6 * (rng.random(60) < 0.1),
        "a": arrivals,
        "w": writers,
        "n": numbers,
        "o": off,
    }
    return pa.table({name: values[order] for name, values in columns.items()})


def older_than_promised(spec: dict[str, Any], seed: int) -> int:
    """Return how many rows come after a promise that they break; takes are cut at random."""
    source, chance = machine(rows(seed), **spec), np.random.default_rng(seed)
    promised_ns, broken = START_NS, 0
    try:
        while (sent := take(source, 1_000, max_rows=int(chance.integers(1, 9)))) is not None:
            if sent.batch is not None:
                broken += int((sent.batch.event_time_ns < promised_ns).sum())
            assert sent.progress.promise_ns >= promised_ns
            promised_ns = sent.progress.promise_ns
    except OrderError:
        pass  # refused, so that it comes nowhere
    return broken


def resume_refused(spec: dict[str, Any]) -> str:
    flow = sw.Dataflow("f")
    made = flow.source("s", SourceSpec(input=sw.table(rows(0)), event_time="t", **spec))
    counts = made.aggregate(by="w", window=sw.tumbling("10ns"), c=sw.count())
    counts.sink("out", sw.parquet_sink("out"))
    return flow_fingerprints(flow.steps)["out"].why_not


@pytest.mark.parametrize("spec", IN_ORDER.values(), ids=IN_ORDER.keys())
def test_a_source_keeps_its_promise_where_a_flow_may_resume(spec: dict[str, Any]) -> None:
    assert not any(older_than_promised(spec, seed) for seed in range(20))
    assert not of_source(SourceSpec(input=sw.table(rows(0)), event_time="t", **spec)).may_be_late
    assert resume_refused(spec) == ""


@pytest.mark.parametrize("spec", LATE.values(), ids=LATE.keys())
def test_a_source_that_may_break_its_promise_says_so_and_no_flow_resumes(
    spec: dict[str, Any],
) -> None:
    assert any(older_than_promised(spec, seed) for seed in range(20))
    assert of_source(SourceSpec(input=sw.table(rows(0)), event_time="t", **spec)).may_be_late
    assert "source 's'" in resume_refused(spec)


@pytest.mark.parametrize("spec", IN_ORDER.values(), ids=IN_ORDER.keys())
def test_windows_of_such_a_source_do_not_depend_on_slices(spec: dict[str, Any]) -> None:
    counted = []
    for limits in (sw.Limits(max_slice_rows=1, min_slice_rows=1), sw.Limits()):
        flow = sw.Dataflow("f")
        one = flow.source("s", SourceSpec(input=sw.table(rows(7)), event_time="t", **spec))
        two = flow.source("u", sw.table(rows(8).sort_by("t")), event_time="t")
        both = flow.merge(one.select("t", "w"), two.select("t", "w"))
        both.aggregate(by="w", window=sw.tumbling("9ns"), n=sw.count()).sink("n", sw.collect_sink())
        job = sw.Simulation().submit(flow, limits=limits)
        try:
            job.wait()
        except OrderError as failed:  # refused: the same row in each run
            counted.append([str(failed).partition(":")[0]])
        else:
            counted.append(job.result("n").to_pylist())
    assert counted[0] == counted[1] != []


def test_a_gate_with_a_slack_of_its_own_is_told_and_one_for_windows_in_time_is_not() -> None:
    def told(**merge: Any) -> str:
        flow = sw.Dataflow("f")
        one = flow.source("s", sw.table(rows(7).sort_by("t")), event_time="t", arrival="a")
        two = flow.source("u", sw.table(rows(8).sort_by("t")), event_time="t", arrival="a")
        both = flow.merge(one, two, name="both", **merge)
        close = None if merge else sw.closing.probslack(miss=0.1)
        windows = both.aggregate(by="w", window=sw.tumbling("9ns"), n=sw.count(), close=close)
        windows.sink("n", sw.collect_sink())
        return flow.explain()

    assert "note: results may differ from run to run, for the gate of 'both' has" in told(
        slack="1s"
    )
    assert "note: results may differ" not in told()


def test_rows_passed_late_by_a_source_are_in_the_printed_ledger() -> None:
    flow = sw.Dataflow("f")
    spec = SourceSpec(input=sw.table(rows(0)), event_time="t", **LATE["k"])
    flow.source("s", spec).sink("out", sw.collect_sink())
    job = sw.Simulation().submit(flow)
    job.wait()
    ledger = job.report().ledger
    assert ledger.late_used > 0
    assert str(ledger).endswith(f"; 60 results; {ledger.late_used} came late and went on")
    assert f"at the sources, {ledger.late_used} passed on late" in ledger_line(job.report()).plain
    assert "at the gates" not in ledger_line(job.report()).plain


@pytest.mark.parametrize("out_of_order", ["late", "sort", "error"])
@pytest.mark.parametrize("idle_ns", [None, 10])
def test_a_disorder_is_behind_the_newest_of_all_writers(
    out_of_order: Any, idle_ns: int | None
) -> None:
    data = {"t": [0, 1000, 10, 8], "w": ["A", "B", "A", "A"]}
    source = machine(data, writer="w", out_of_order=out_of_order, disorder_ns=5, idle_ns=idle_ns)
    if out_of_order == "error":
        with pytest.raises(OrderError, match="row 2 "):
            drain(source)
        return
    assert times(drain(source)) == [0, 1000]
    assert source.late_dropped == 2


def test_writers_far_apart_may_each_be_out_by_a_disorder_where_the_source_says_its_promise() -> (
    None
):
    data = {"t": [0, 1000, 10, 8, 4], "w": ["A", "B", "A", "A", "A"], "p": [0] * 5}
    spec: dict[str, Any] = {"promise": sw.col("p"), "out_of_order": "late", "disorder_ns": 5}
    source = machine(data, writer="w", **spec)
    assert times(drain(source)) == [0, 1000, 10, 8]
    assert source.late_dropped == 1


def test_late_rows_that_no_gate_sees_leave_alike_however_they_are_cut() -> None:
    flow = sw.Dataflow("f")
    spec = SourceSpec(input=sw.table(rows(0)), event_time="t", **LATE["k"])
    flow.source("s", spec).sink("out", sw.parquet_sink("out"))
    assert flow_fingerprints(flow.steps)["out"].why_not == ""
    assert "note: results may differ" not in flow.explain()

"""Outputs and inputs of one's own in the simulator: what is called when, and who hears of what."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from examples import own_input, own_output
from slackwater.runtime.errors import FlowError, SinkError, TypeMismatch
from slackwater.runtime.measure.ledger import imbalances
from tests.support.flows import simulated
from tests.support.own_inputs import Feed
from tests.support.own_outputs import Noting, NotingSink

N = 50


def flow_to(output: Any, *, n: int = N) -> sw.Dataflow:
    flow = sw.Dataflow("own")
    numbers = flow.source("numbers", sw.table({"t": list(range(n))}), event_time="t")
    numbers.sink("mine", output)
    return flow


def test_the_example_of_an_output_does_what_its_page_says(tmp_path: Path) -> None:
    path = str(tmp_path / "buses.db")
    _, report = simulated(own_output.flow(path))
    assert own_output.table(path) == [("7", 0.0), ("7", 2.0), ("12", 4.0)]
    assert not imbalances(report)


def test_the_example_of_an_output_leaves_all_as_it_was_behind_a_failure(tmp_path: Path) -> None:
    path = str(tmp_path / "buses.db")
    simulated(own_output.flow(path))
    flow = own_output.flow(path)
    bad = Noting("write")
    flow.source("more", sw.table({"t": [1]}), event_time="t").sink("bad", bad)
    with pytest.raises(SinkError, match="'bad'"):
        simulated(flow, nodes=1)
    assert len(own_output.table(path)) == 3
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("BEGIN EXCLUSIVE")  # nobody has it open any more
    connection.close()


def test_the_example_of_an_input_does_what_its_page_says(tmp_path: Path) -> None:
    log = tmp_path / "tickets.log"
    log.write_text("1 7 2.5\n3 12 3.0\n8 7 2.5\n14 7 4.0\nend\n")
    job, _ = simulated(own_input.flow(str(log)))
    found = [(row["bus"], row["euros"]) for row in job.result("out").to_pylist()]
    assert found == [("7", 5.0), ("12", 3.0), ("7", 4.0)]


def test_the_example_of_an_input_hands_over_whole_lines_only(tmp_path: Path) -> None:
    log = tmp_path / "tickets.log"
    log.write_text("1 7 2.5\n3 12")
    reader = own_input.TicketLog(str(log)).open()
    first = reader.poll()
    assert isinstance(first, pa.RecordBatch)
    assert (first.num_rows, reader.poll()) == (1, None)
    with log.open("a") as file:
        file.write(" 3.0\nend\n")
    second = reader.poll()
    assert isinstance(second, pa.RecordBatch)
    assert second.to_pylist() == [{"ts": 3, "bus": "12", "euros": 3.0}]
    assert reader.poll() is sw.connectors.END_OF_INPUT is reader.poll()
    reader.close()


def test_an_output_is_opened_written_to_and_closed_and_counted_like_ours() -> None:
    output = Noting()
    _, report = simulated(flow_to(output))
    ends = ["end", "flush", "commit", "close"]
    writes = output.calls[1 : -len(ends)]
    assert output.methods == ["open", *["write" for _ in writes], *ends]
    assert output.calls[0] == ("open", (["t"], "mine"))
    assert [t for _, rows in writes for t in rows["t"]] == [*range(N)]
    assert all(rows["first"] == rows["t"][0] for _, rows in writes)
    assert not imbalances(report)
    _, ours = simulated(flow_to(sw.callback_sink(lambda _: None)))
    assert repr(report.sinks) == repr(ours.sinks), "the latency, too"
    assert report.sinks[0].rows == N
    assert report.ledger.out == N


@pytest.mark.parametrize(
    ("method", "behind"),
    [("open", []), ("write", ["abort"]), ("close", ["abort"]), ("abort", [])],
)
def test_what_an_output_raises_names_sink_class_and_line_and_is_aborted(
    method: str, behind: list[str]
) -> None:
    output = Noting(method)
    flow = flow_to(output)
    if method == "abort":  # another fails first, and what happens behind that is told too
        numbers = flow.source("more", sw.table({"t": [1]}), event_time="t")
        numbers.sink("other", sw.callback_sink(_fails))
        with pytest.raises(sw.SlackwaterError, match="bad luck"):
            simulated(flow, nodes=1)
        assert output.methods[-1] == "abort"
        return
    with pytest.raises(SinkError) as caught:
        simulated(flow)
    said = str(caught.value)
    who = "Noting" if method == "open" else "NotingSink"
    assert f"sink 'mine': {who}.{method} raised ValueError: no {method} today, at " in said
    assert "own_outputs.py, line" in said
    assert said.count("Traceback") == 1
    assert 'raise self.problem or ValueError(f"no {method} today")' in said
    assert ("sample of the batch: [{'t': 0}" in said) is (method == "write")
    assert output.methods[output.methods.index(method) + 1 :] == behind


def _fails(_: pa.RecordBatch) -> None:
    raise ValueError("bad luck")


def test_an_error_of_ours_or_an_exit_in_an_output_is_told_with_its_sink_too() -> None:
    with pytest.raises(SinkError, match=r"sink 'mine': NotingSink\.write raised SinkError: full"):
        simulated(flow_to(Noting("write", SinkError("full"))))
    with pytest.raises(SinkError, match="to end the job, raise an error instead"):
        simulated(flow_to(Noting("write", SystemExit(0))))


def test_a_custom_output_is_committed_by_rows_and_by_time_as_its_traits_say() -> None:
    output = Noting(traits=sw.connectors.SinkTraits(rows=20))
    simulated(flow_to(output))
    assert [method for method in output.methods if method != "write"] == [
        "open",
        *["flush", "commit"] * (N // 20),
        *["end", "flush", "commit", "close"],
    ]
    firsts = [rows["first"] for method, rows in output.calls if method == "write"]
    assert {20, 40} <= set(firsts), "a write ends where a part does"
    live = Noting(traits=sw.connectors.SinkTraits(every_ns=2_000_000_000))
    flow = sw.Dataflow("live")
    data = sw.table({"t": [0, 1, 10]})
    flow.source("numbers", data, event_time="t", time_unit="s", speed=1.0).sink("mine", live)
    simulated(flow)
    assert live.methods == [
        "open",
        *["write", "write", "flush", "commit"],
        *["write", "end", "flush", "commit", "close"],
    ]


def test_a_custom_output_that_resumes_is_written_only_rows_that_it_has_not() -> None:
    resumes = sw.connectors.SinkTraits(resumes=True)
    output = Noting(traits=resumes, last_ordinal=19)
    _, report = simulated(flow_to(output))
    rows = [rows for method, rows in output.calls if method == "write"]
    assert [t for each in rows for t in each["t"]] == [*range(20, N)]
    assert rows[0]["first"] == 20
    assert (report.sinks[0].rows, report.sinks[0].already_committed) == (N - 20, 20)
    assert not imbalances(report)
    with pytest.raises(SinkError, match=r"gave 50 rows, and its last_ordinal\(\) is 50, .* other"):
        simulated(flow_to(Noting(traits=resumes, last_ordinal=N)))
    for wrong, said in ((-2, "-2; it must return the ordinal"), (True, "True; it must return")):
        with pytest.raises(SinkError, match=said):
            simulated(flow_to(Noting(traits=resumes, last_ordinal=wrong)))
    _, report = simulated(flow_to(Noting(traits=resumes, last_ordinal=np.int64(19))))  # type: ignore[arg-type]
    assert report.sinks[0].already_committed == 20
    with pytest.raises(SinkError, match=r"returned 4, and .*SinkTraits\(resumes=True\)"):
        simulated(flow_to(Noting(last_ordinal=4)))


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        ([].pop, r"^sink 'mine': .*ToldSink\.progress raised IndexError: "),
        (lambda: 3, r"^sink 'mine': .*ToldSink\.progress returned 3; it must return an sw\.conn"),
    ],
)
def test_a_wrong_progress_is_a_note_and_costs_no_row(progress: Any, said: str) -> None:
    class ToldSink(NotingSink):
        def progress(self) -> Any:
            return progress()

    class Told(Noting):
        def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> NotingSink:
            super().open(schema, context)
            return ToldSink(self)

    output = Told()
    _, report = simulated(flow_to(output))
    assert (report.state, report.sinks[0].rows, output.methods[-1]) == ("done", N, "close")
    (note,) = [note for note in report.notes if "progress" in note]
    assert re.search(said, note)


def test_a_custom_output_resumes_only_where_each_run_gives_the_same_rows() -> None:
    flow = sw.Dataflow("varies")
    numbers = flow.source("numbers", sw.table({"t": [1], "n": [1]}), event_time="t")
    pairs = numbers.join(numbers, on="n", within="1s", slack="1s")
    pairs.sink("mine", Noting(traits=sw.connectors.SinkTraits(resumes=True)))
    simulated(flow)
    pairs.sink("again", Noting(traits=sw.connectors.SinkTraits(resumes=True), last_ordinal=0))
    with pytest.raises(SinkError, match=r"'again': .* returned 0, .*an earlier run, .*has a slack"):
        simulated(flow)


def test_a_job_that_never_runs_opens_no_output_of_ones_own() -> None:
    output = Noting()
    with sw.Simulation() as nodes:
        nodes.submit(flow_to(output))
    assert output.calls == []


def test_what_open_returns_must_be_a_writer() -> None:
    class Forgot(Noting):
        def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> Any:
            pass

    class Old(Noting):
        def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> Any:
            super().open(schema, context)
            return OldSink(self)

    class OldSink(NotingSink):
        def write(self, rows: pa.RecordBatch) -> None:  # type: ignore[override]
            raise AssertionError(f"it is refused before {rows} come")

    advice = r"as a class of sw\.connectors\.Sink with write\(rows, first_ordinal\)"
    with pytest.raises(SinkError, match=rf"Forgot\.open returned None, .*{advice}"):
        simulated(flow_to(Forgot()))
    with pytest.raises(SinkError, match=rf"an OldSink, whose write does not take .*{advice}"):
        simulated(flow_to(Old()))


def test_what_is_no_output_is_refused_where_the_flow_is_written() -> None:
    class Duck:
        def describe(self) -> str:
            return "an output of the old form"

    class Wordless(Noting):
        def describe(self) -> Any:
            return 7

    for wrong, said in (
        (
            "out/",
            r"sink 'mine': 'out/' is not an output; an output is parquet_sink",
        ),
        (Noting, r"sink 'mine': Noting is a class, and .*; make one: Noting\(…\)"),
        (sw.parquet_sink, r"call it: parquet_sink\(…\)"),
        (Duck(), r"write class Duck\(sw\.connectors\.Output\), .* write\(rows, first_ordinal\)"),
        (Noting(traits={"resumes": True}), "traits is a dict; it must be a value such as"),  # type: ignore[arg-type]
        (Wordless(), r"describe returned an int; it must return a few words"),
    ):
        with pytest.raises(TypeMismatch, match=said):
            flow_to(wrong)
    with pytest.raises(SinkError, match=r"sink 'mine': Noting\.describe raised ValueError"):
        flow_to(Noting("describe"))


def test_explain_says_what_an_output_says_of_itself() -> None:
    assert "writes   notes of my own" in flow_to(Noting()).explain()


def test_a_sink_beside_an_output_of_ones_own_cannot_go_on_behind_a_run(tmp_path: Path) -> None:
    flow = flow_to(sw.jsonl_sink(tmp_path / "out", resume=True))
    more = flow.source("more", sw.table({"t": [1]}), event_time="t")
    with pytest.raises(FlowError, match="notes of my own sink 'notes' of this flow would be given"):
        more.sink("notes", Noting())


def test_an_input_that_never_has_rows_ends_a_simulation_with_a_way_out() -> None:
    def silent() -> sw.Dataflow:
        flow = sw.Dataflow("silent")
        feed = Feed(lambda: iter(lambda: None, 1))  # None for ever
        flow.source("feed", feed, event_time="t").sink("out", sw.collect_sink())
        return flow

    with sw.Simulation() as nodes:
        with pytest.raises(sw.SlackwaterError, match=r"faults=\[sw\.testing\.UserStops\(at_ns="):
            nodes.submit(silent()).wait()
        stop = sw.testing.UserStops(at_ns=5_000_000_000)
        assert nodes.submit(silent(), faults=[stop]).wait().state == "stopped"

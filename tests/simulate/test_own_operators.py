"""`dedupe` and an operator of one's own: the same in the simulator, on Ray, and however shared."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from examples import own_operator
from slackwater.runtime.errors import FlowError, OperatorError, SettingError, TypeMismatch
from slackwater.testing import verify_operator
from tests.support.flows import sorted_rows
from tests.support.own_operators import EXPECTED, WHAT, flow_of, rows, run


def test_the_example_does_what_its_page_says() -> None:
    job, _ = run(own_operator.flow())
    assert job.result("out").to_pylist() == EXPECTED
    verify_operator(
        lambda s: s.key_by("bus").process(own_operator.Stops, WHAT, within="2m"), rows(3), tries=3
    )


@pytest.mark.parametrize("replicas", [2, 3])
def test_replicas_make_what_one_makes(replicas: int) -> None:
    one, first = run(flow_of())
    several, second = run(flow_of(replicas=replicas))
    for sink in ("out", "seen"):
        assert sorted_rows(several.result(sink)) == sorted_rows(one.result(sink))
    assert second.ledger.filtered == first.ledger.filtered > 0
    assert second.ledger.out == first.ledger.out


def test_a_row_that_is_like_another_counts_as_filtered_once() -> None:
    job, report = run(flow_of())
    (once,) = [stage for stage in report.stages if stage.name == "once"]
    assert once.counted["duplicates"] + once.rows_out == once.rows_in == 1_200
    assert once.passes_on
    times: dict[str, int] = {}
    data = pa.concat_tables([rows(0), rows(1)]).sort_by("ts").to_pylist()
    firsts = 0
    for row in data:  # event by event, as its docs say
        if row["ts"] - times.get(row["bus"], -100) > 5:
            times[row["bus"]] = row["ts"]
            firsts += 1
    assert once.rows_out == firsts
    assert report.ledger.filtered >= once.counted["duplicates"]
    assert job.result("seen").num_rows <= firsts


def test_late_rows_of_an_operator_of_ones_own_are_a_stream() -> None:
    job, report = run(flow_of(slack="1s", late=True))
    (stops,) = [stage for stage in report.stages if stage.name == "stops"]
    late = job.result("late")
    assert late.num_rows == stops.late_dropped > 0
    assert {"bus", "speed", "late_step", "late_by_ns"} <= {*late.schema.names}
    assert "late_side" not in late.schema.names


class Failing:
    """Fails in one of its methods."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.due_ns: int | None = None

    def on_rows(self, key: str, rows: Any) -> Any:  # noqa: ARG002
        self.due_ns = rows.event_time_ns + 1
        if self.method == "on_rows":
            raise KeyError("nothing of the kind")
        if self.method == "past":
            self.due_ns = rows.event_time_ns
        return {"a": 1} if self.method == "dict" else [{"a": 1}] if self.method == "names" else None

    def on_time(self, key: str, t: int) -> Any:  # noqa: ARG002
        raise ValueError("out of time")


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        ("on_rows", r"step 'own': .*KeyError.*\n(.*\n)*.*nothing of the kind(.*\n)*first"),
        ("on_time", r"step 'own': .*ValueError: out of time\n(.*\n)*key '\d' at event_time_ns="),
        ("past", r"step 'own': Failing has set due_ns=\d+; it must be .*later than \d+"),
        ("dict", r"step 'own': Failing.on_rows returned a dict; it must return a list of rows"),
        ("names", r"step 'own': what its function returned lacks bus and has besides a"),
    ],
)
def test_what_goes_wrong_in_it_names_the_step(method: str, problem: str) -> None:
    flow = sw.Dataflow("failing")
    stream = flow.source("rows", sw.table(rows(0)), event_time="ts", time_unit="s")
    own = stream.key_by("bus").process(Failing(method), {"bus": "string"}, within="1m", name="own")
    own.sink("out", sw.collect_sink())
    job = sw.Simulation(nodes=1).submit(flow)
    with pytest.raises(OperatorError, match=problem):
        job.wait()


class Unmade:
    """An operator that cannot be made here."""

    def __init__(self) -> None:
        self.config: Any = {}["config"]

    def on_rows(self, key: str, rows: Any) -> None:
        del key, rows


def test_what_is_no_operator_is_refused_where_it_is_written() -> None:
    flow = sw.Dataflow("refused")
    stream = flow.source("rows", sw.table(rows(0)), event_time="ts", time_unit="s")
    keyed = stream.key_by("bus")
    with pytest.raises(TypeMismatch, match=r"must be a class or an object with on_rows"):
        keyed.process(len, WHAT, within="1m")
    with pytest.raises(TypeMismatch, match=r"Failing\(\) could not be made without arguments"):
        keyed.process(Failing, WHAT, within="1m")
    with pytest.raises(
        OperatorError, match=r"Unmade\(\) raised KeyError: 'config', at .*py, line "
    ):
        keyed.process(Unmade, WHAT, within="1m")
    with pytest.raises(SettingError, match=r"'process-1': within"):
        keyed.process(own_operator.Stops, WHAT, within="0s")
    with pytest.raises(FlowError, match=r"'dedupe-1': dedupe has no key"):
        stream.dedupe((), within="1s")
    counts = stream.aggregate(by="bus", window=sw.tumbling("1m"), n=sw.count(), late="correct")
    with pytest.raises(FlowError, match="whose windows leave again"):
        counts.dedupe("bus", within="1s")


class Counts:
    """Counts a key's rows."""

    def __init__(self) -> None:
        self.rows = 0

    def on_rows(self, key: float, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.rows += len(rows)
        return [{"x": key, "n": self.rows}]


def counts(flow: sw.Stream) -> sw.Stream:
    return flow.key_by("x").process(Counts(), {"x": "float64", "n": "int64"}, within="1m")


def test_nan_is_one_key_of_an_operator_of_ones_own_after_a_restart_too() -> None:
    data = pa.table({"ts": [1, 2, 3, 4], "x": [math.nan, 0.0, math.nan, -0.0]})
    flow = sw.Dataflow("nan")
    source = flow.source("s", sw.table(data), event_time="ts", time_unit="s")
    counts(source).sink("out", sw.collect_sink())
    job, _ = run(flow)
    assert job.result("out")["n"].to_pylist() == [1, 1, 2, 2]
    verify_operator(counts, data, tries=5)

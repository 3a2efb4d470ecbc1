"""A flow predicted from, and placed by, what an earlier job of it has kept; all in virtual time."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.cli.main import app
from slackwater.provisioning import fewest_nodes
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.foresight.predicted.predicting import ahead_of
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.foresight.rates import OnOff
from slackwater.runtime.simulate import CostModel
from slackwater.sampling import sample_of_history
from tests.support.flows import late_pair
from tests.support.known_work import MS

NAMES = ("a", "b", "c")
ROW_MS = 16
COST = CostModel(
    per_slice_ns=50_000,
    per_row_ns=2_000,
    stages={f"gate-{name}": ROW_MS * MS for name in NAMES},
)
EXACT = {f"gate-{name}": f"{ROW_MS}.052ms" for name in NAMES}  # a slice for each row


def work(columns: Any) -> Any:
    return {"n": columns["n"]}


def other_work(columns: Any) -> Any:
    return {"n": columns["n"] + 1}


def at_s(seed: int, name: str, mean: float) -> np.ndarray:
    rng = np.random.default_rng([seed, ord(name)])
    load = OnOff(mean, rate_ratio=20, high_s=5)
    return np.concatenate(
        [
            np.sort(rng.uniform(a, b, rng.poisson(rate * (b - a))))
            for a, b, rate in load.rates(rng, until_s=40.0)
        ]
    )


RATES = {"a": 30.0, "b": 15.0, "c": 15.0}


def three(seed: int = 1, does: Any = work, deadline: str = "20s") -> sw.Dataflow:
    """Three sources that burst, each with work of its own: the simple rule puts two together."""
    flow = sw.Dataflow("three", deadline=deadline)
    for name, mean in RATES.items():
        times_ns = (at_s(seed, name, mean) * 1e9).astype("int64")
        table = pa.table(
            {"ts": pa.array(times_ns, pa.timestamp("ns")), "n": np.arange(len(times_ns))}
        )
        rows = flow.source(name, sw.table(table), event_time="ts", arrival="ts", speed=1)
        gate = rows.merge(name=f"gate-{name}")
        done = gate.map_batches(does, schema={"n": "int64"}, name=f"work-{name}")
        done.sink(f"out-{name}", sw.collect_sink())
    return flow


def host() -> sw.Simulation:
    return sw.Simulation(2, cost=COST)


def tuning(folder: Path) -> sw.Tuning:
    return sw.Tuning(policy="even split", history=folder)


def worst_s(report: sw.JobReport) -> float:
    return max(sink.latency.max_ns for sink in report.sinks) / 1e9


@dataclass
class Past:
    """What a job has left."""

    seed: int
    folder: Path
    report: sw.JobReport


@pytest.fixture(scope="module", params=[1, 3])
def past(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Past:
    folder = tmp_path_factory.mktemp("history")
    report = host().submit(three(request.param), tuning=tuning(folder)).wait()
    return Past(request.param, folder, report)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history of a flow that has run once."""
    folder = tmp_path_factory.mktemp("history")
    host().submit(three(), tuning=tuning(folder)).wait()
    return folder


def exactly(past: Past, **options: Any) -> Prediction:
    """Predict from the costs that the simulator has, and the arrivals to a tenth of a second."""
    rates = {
        name: np.histogram(at_s(past.seed, name, mean), bins=400, range=(0, 40))[0]
        for name, mean in RATES.items()
    }
    return host().predict(three(past.seed), rates, costs=EXACT, horizon="40s", **options)


def test_a_history_predicts_what_exact_costs_do_within_three_per_cent(past: Past) -> None:
    """Arrivals are known to a tenth of a second, costs from what the stages did."""
    made = host().predict(three(past.seed), history=past.folder)
    exact = exactly(past, placement=made.plan.slots)
    assert exact.worst_s > 3
    assert made.worst_s == pytest.approx(exact.worst_s, rel=0.03)
    cost_s = {one.name: one.cost_s[0] for one in made.graph.operators}
    for name in NAMES:
        assert cost_s[f"gate-{name}"] == pytest.approx(0.016052, rel=0.005)
    assert [one.selectivity for one in made.graph.operators] == [(1.0,)] * 9


def test_a_flow_with_a_history_is_placed_by_search_and_is_no_slower_than_by_the_simple_rule(
    past: Past,
) -> None:
    first = past.report
    assert first.prediction is None, "nothing was known yet"
    again = host().submit(three(past.seed), tuning=tuning(past.folder)).wait()
    assert again.prediction is not None
    assert worst_s(again) <= worst_s(first) * 1.001
    assert again.prediction.worst_ns / 1e9 == pytest.approx(worst_s(again), rel=0.1)
    assert again.prediction.shifts == []


def test_explain_says_where_the_placement_comes_from(kept: Path, tmp_path: Path) -> None:
    text = host().explain(three(), tuning=tuning(kept))
    assert "placed by search, from the history (the newest of 1 job that fits, 40 s long)" in text
    assert "predicted from the history (the newest of 1 job that fits, " in text
    assert "plans " not in text, "of other plans a history says nothing"
    assert host().explain(three(), history=kept) == text
    text = host().explain(three(), tuning=tuning(tmp_path))
    assert "placed by the simple rule, no statistics: the history in " in text
    assert "has no job of flow 'three' yet" in text


def test_a_history_without_a_job_places_by_the_simple_rule_and_refuses_a_prediction(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="slackwater"):
        plan = host().plan(three(), tuning=tuning(tmp_path))
    assert "search" not in plan.placed_by.values()
    assert plan.expected is None
    assert "no statistics" in plan.verdict.notes[-1]
    with pytest.raises(SettingError, match="has no job of flow 'three' yet; submit it once"):
        host().predict(three(), history=tmp_path)
    with pytest.raises(SettingError, match="no rates are given"):
        host().plan(three(), tuning=tuning(tmp_path), admission="reject")


def test_statistics_from_another_version_of_the_flow_are_refused(kept: Path) -> None:
    with pytest.raises(SettingError, match="another version of the flow: they differ in gate-a"):
        host().predict(three(does=other_work), history=kept)
    plan = host().plan(three(does=other_work), tuning=tuning(kept))
    assert plan.expected is None
    assert "another version of the flow" in plan.verdict.notes[-1]
    more = three()
    at = pa.table({"ts": pa.array([0], pa.timestamp("ns"))})
    more.source("d", sw.table(at), event_time="ts").sink("out-d", sw.collect_sink())
    with pytest.raises(SettingError, match="they differ in d, out-d"):
        sample_of_history(more, kept)


def lines_of(folder: Path) -> tuple[Path, list[str]]:
    (path,) = folder.glob("*/*.jsonl")
    return path, path.read_text().splitlines(keepends=True)


@pytest.fixture
def copy(kept: Path, tmp_path: Path) -> Path:
    """A history of its own, to be spoilt."""
    path, lines = lines_of(kept)
    place = tmp_path / "copy" / path.parent.name
    place.mkdir(parents=True)
    (place / path.name).write_text("".join(lines))
    return tmp_path / "copy"


@pytest.mark.parametrize(
    ("spoilt", "claim"),
    [
        (lambda lines: lines[1:], "of a release that kept no statistics, or cut off"),
        (lambda lines: [*lines[:5], lines[5][:20]], "half a file"),
        (lambda lines: lines[:1], "it has no sample of a, gate-a"),
        (
            lambda lines: [one for one in lines if '"step": "gate-b"' not in one],
            "it has no sample of gate-b",
        ),
        (
            lambda lines: [lines[0], *(_without_rows(one) for one in lines[1:])],
            "no row was read at a, b, c",
        ),
    ],
)
def test_a_record_that_shows_no_run_is_passed_over_and_told(
    copy: Path, spoilt: Any, claim: str
) -> None:
    path, lines = lines_of(copy)
    path.write_text("".join(spoilt(lines)))
    with pytest.raises(SettingError, match=claim):
        host().predict(three(), history=copy)
    assert host().plan(three(), tuning=tuning(copy)).expected is None
    (path.parent / "0.jsonl").write_text("".join(lines))  # an older one, and whole
    made = host().predict(three(), history=copy)
    assert made.sample.origin == "the newest of 2 jobs that fits, 40 s long"


def _without_rows(line: str) -> str:
    return json.dumps({**json.loads(line), "rows": 0, "came": 0, "handed": 0}) + "\n"


def test_what_a_person_has_placed_stays(kept: Path) -> None:
    by_hand = {"gate-a": "node-1"}
    plan = host().plan(three(), tuning=tuning(kept), placement=by_hand)
    assert (plan.slots["gate-a"], plan.placed_by["gate-a"]) == ("node-1", "placement")
    assert "search" in plan.placed_by.values()
    whole = host().plan(three(), tuning=tuning(kept), placement={"*": "node-2"})
    assert whole.expected is not None, "what is asked about it is answered"
    assert set(whole.slots.values()) == {"node-2"}


def test_rates_that_are_given_stand_over_those_of_the_history(kept: Path) -> None:
    made = host().predict(three(), {"a": 10, "b": 20, "c": 30}, history=kept)
    assert made.rates == pytest.approx({"a": 10, "b": 20, "c": 30})
    assert not made.is_trace
    assert len(made.work.load_s[0]) == 600, "60 s in steps of 100 ms"
    own = host().predict(three(), history=kept)
    assert own.is_trace
    assert own.rates["a"] == pytest.approx(len(at_s(1, "a", 30)) / 40, rel=0.1)
    with pytest.raises(SettingError, match="flow 'three' has no rates: give rates="):
        host().predict(three())


def test_a_long_history_is_looked_at_in_longer_steps(kept: Path) -> None:
    recorded = sample_of_history(three(), kept).recorded
    assert ahead_of(5_000.0, None, None) == (60.0, 0.1)
    assert ahead_of(recorded, None, None) == (recorded["a"].length_s, 0.1)
    assert ahead_of(recorded, "15min", None) == ("15min", 0.1)
    assert ahead_of(recorded, "2h", None) == ("2h", 0.72)
    assert ahead_of(recorded, "15min", "50ms") == ("15min", "50ms")


def test_a_deadline_that_would_break_by_the_history_refuses_the_flow(kept: Path) -> None:
    tight = three(deadline="1s")
    with pytest.raises(FlowError, match=r"its deadline of 1\.00 s would not be kept"):
        host().submit(tight, tuning=tuning(kept), admission="reject")
    fine = host().plan(three(), tuning=tuning(kept), admission="reject")
    assert fine.verdict.refusal is None


def test_the_fewest_nodes_are_found_from_a_history(kept: Path) -> None:
    even = {name: [rate / 10] * 600 for name, rate in {"a": 60, "b": 20, "c": 20}.items()}
    exact = fewest_nodes(three(), even, deadline_s=2.0, costs=EXACT)
    found = fewest_nodes(three(), even, deadline_s=2.0, history=kept)
    assert found.nodes == exact.nodes == 2
    assert fewest_nodes(three(), deadline_s=60.0, history=kept).nodes == 1


FLOW = """
import numpy as np, pyarrow as pa, slackwater as sw
from tests.support.flows import late_pair

flow = late_pair("late", seconds=10, deadline="5s")
"""


def test_the_command_line_predicts_from_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    file, folder = tmp_path / "flow.py", tmp_path / "history"
    file.write_text(FLOW)

    def said(*words: str, code: int = 0) -> str:
        found = CliRunner().invoke(app, [words[0], str(file), "--history", str(folder), *words[1:]])
        assert found.exit_code == code, found.output
        return " ".join(found.output.split())

    assert "has no job of flow 'late' yet" in said("plan", code=1)
    late = late_pair("late", seconds=10, deadline="5s")
    sw.Simulation(2).submit(late, tuning=sw.Tuning(policy="500ms", history=folder)).wait()
    text = said("plan", "--nodes", "2")
    assert "predicted from the history (the newest of 1 job that fits, 10 s long, 9" in text
    assert "rates fast 50/s, slow 5" in text or "rates fast 50/s, slow 4" in text
    plain = json.loads(said("plan", "--rate", "200", "--json"))
    assert plain["history"] == "the newest of 1 job that fits, 10 s long"
    assert sum(plain["rates"].values()) == pytest.approx(200)
    assert "1 node keeps 5.00 s" in said("provision")
    assert "from the history (the newest of 1 job that fits, 10 s long)" in said("explain")

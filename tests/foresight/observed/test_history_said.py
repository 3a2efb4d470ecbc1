"""What is said of a history: which job it is, what is wrong with it, and whether a flow may run."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.foresight.rates import RecordedRate
from slackwater.runtime.foresight.recorded import arrivals_recorded
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.simulate import CostModel
from slackwater.sampling import sample_of_history
from tests.foresight.observed.test_history import tuning
from tests.support.flows import late_pair


def late(deadline: str = "20s", seconds: float = 12) -> sw.Dataflow:
    return late_pair("late", seconds=seconds, deadline=deadline)


def run(folder: Path, seconds: float = 12, cost: CostModel | None = None) -> None:
    sw.Simulation(1, cost=cost).submit(late(seconds=seconds), tuning=tuning(folder)).wait()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    run(folder)
    return folder


def test_a_history_without_a_job_is_a_note_where_a_warning_was_asked_for(tmp_path: Path) -> None:
    host = sw.Simulation(2)
    plan = host.plan(late(), tuning=tuning(tmp_path), admission="warn")
    assert "has no job of flow 'late' yet" in plan.verdict.notes[-1]
    with pytest.raises(SettingError, match=r"no rates are given .*has no job of flow 'late' yet"):
        host.plan(late(), tuning=tuning(tmp_path), admission="reject")
    with pytest.raises(SettingError, match="no rates are given: add"):
        host.plan(late(), admission="warn")


def test_a_flow_that_is_placed_by_hand_is_judged_by_its_history_too(
    kept: Path, tmp_path: Path
) -> None:
    host, by_hand = sw.Simulation(2), {"*": "node-1"}
    fine = host.plan(late(), tuning=tuning(kept), placement=by_hand, admission="reject")
    assert fine.verdict.refusal is None
    run(tmp_path / "slow", cost=CostModel(stages={"gate": 15_000_000}))
    slow = tuning(tmp_path / "slow")
    with pytest.raises(FlowError, match="would not be kept"):
        host.submit(late("2s"), tuning=slow, placement=by_hand, admission="reject")
    for folder in (kept, tmp_path):
        text = host.explain(late(), tuning=tuning(folder), placement=by_hand)
        assert "placed by hand" in text
        assert "simple rule" not in text
    assert "placed by hand: no rates" in host.explain(late(), placement=by_hand)


def test_a_job_that_was_stopped_at_once_does_not_stand_over_a_long_one(tmp_path: Path) -> None:
    run(tmp_path, 12)
    run(tmp_path, 3.5)
    found = sample_of_history(late(), tmp_path)
    assert found.origin == "the newest of 2 jobs that fits, 13 s long"
    run(tmp_path, 8)
    assert sample_of_history(late(), tmp_path).origin == "the newest of 3 jobs that fits, 8 s long"


def test_a_flow_whose_jobs_keep_no_samples_is_not_told_to_run_once_more(tmp_path: Path) -> None:
    flow = sw.Dataflow("plain", deadline="5s")
    rows = pa.table({"ts": pa.array(np.arange(9) * 10**9, pa.timestamp("ns"))})
    flow.source("rows", sw.table(rows), event_time="ts", speed=1).sink("out", sw.collect_sink())
    with pytest.raises(SettingError, match="keep no samples, as it has no gate") as caught:
        sw.Simulation(1).predict(flow, history=tmp_path)
    assert "submit it once" not in str(caught.value)
    with pytest.raises(SettingError, match=r"submit it once .* another host"):
        sw.Simulation(1).predict(late(), history=tmp_path)


def test_what_is_wrong_with_a_file_is_told_with_its_name(kept: Path, tmp_path: Path) -> None:
    (path,) = kept.glob("*/*.jsonl")
    place = tmp_path / path.parent.name
    place.mkdir()
    (place / "7.jsonl").symlink_to(path)
    with pytest.raises(SettingError, match=r"file 7\.jsonl is not read: .* is a link"):
        sample_of_history(late(), tmp_path)
    (place / "7.jsonl").unlink()
    first, *lines = path.read_text().splitlines()
    (place / "7.jsonl").write_text("\n".join([first, *(_much(one) for one in lines)]))
    with pytest.raises(SettingError, match=r"file 7\.jsonl .*a count that no interval has"):
        sample_of_history(late(), tmp_path)


def _much(line: str) -> str:
    plain = json.loads(line)
    return json.dumps({**plain, "arrived": [[n, 2**61] for n, _ in plain["arrived"]]})


def test_arrivals_that_are_no_rows_are_refused() -> None:
    seen = [StageSample(subject=Subject("a"), second=0, rows=10, arrived=((0, 2**40),))]
    with pytest.raises(SettingError, match="rows arrived at a, which read 10"):
        arrivals_recorded(seen, ["a"], interval_s=1.0)


def test_a_record_of_many_events_is_no_longer_than_its_intervals() -> None:
    began_s = time.process_time()
    rate = RecordedRate([2**36, 0, 2**36], interval_s=1.0)
    assert rate.events == 2**37
    assert rate.nth_s(np.array([0, 2**36, 2**37 - 1])) == pytest.approx([0, 2, 3], abs=1e-9)
    assert rate.stretched(10.0).until(np.array([-5.0, 5.0, 90.0])) == pytest.approx(
        [0, 2**35, 2**37]
    )
    assert time.process_time() - began_s < 1


def test_it_is_said_who_has_placed_a_flow_and_only_of_what_was_looked_for(kept: Path) -> None:
    host = sw.Simulation(2)
    made = host.predict(late(), history=kept, placement={"*": "node-1"})
    assert "placed by hand; predicted" in made.placed_text()
    idle = host.predict(late(), history=kept)
    assert idle.placed_text().startswith("placed by the simple rule, from the history")

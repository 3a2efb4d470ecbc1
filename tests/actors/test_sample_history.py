from __future__ import annotations

from pathlib import Path

import slackwater as sw
from actors.sample_history import JOBS, SampleHistory
from runtime.flow.plan import Plan
from runtime.measure.samples import StageSample
from tests.support.flows import late_pair


def plan() -> Plan:
    with sw.Simulation(1) as nodes:
        return nodes.plan(late_pair("late: 1/2", seconds=1, deadline="1s"))


def history(folder: Path, *, most: int = 1_000) -> SampleHistory:
    return SampleHistory(folder, plan(), most=most)


def samples(*seconds: int, stage: str = "gate") -> list[StageSample]:
    return [StageSample(stage=stage, second=second, slack_ns=5) for second in seconds]


def test_what_one_job_keeps_the_next_one_reads_job_after_job(tmp_path: Path) -> None:
    assert history(tmp_path).load() == ([], "0 samples of 0 earlier jobs")
    assert history(tmp_path).save(samples(0, 1), job="1") is None
    assert history(tmp_path).save(samples(0), job="2") is None
    assert history(tmp_path).load() == (samples(0, 1, 0), "3 samples of 2 earlier jobs")
    assert history(tmp_path, most=2).load()[0] == samples(1, 0)


def test_samples_are_kept_in_the_order_of_their_seconds_however_slots_answered(
    tmp_path: Path,
) -> None:
    sent = [*samples(0, 2), *samples(0, 1, 2, stage="fast"), *samples(1)]
    history(tmp_path).save(sent, job="1")
    assert [one.second for one in history(tmp_path).load()[0]] == [0, 0, 1, 1, 2, 2]


def test_stages_that_the_flow_does_not_have_any_more_are_left_out(tmp_path: Path) -> None:
    history(tmp_path).save(samples(0) + samples(0, stage="gone"), job="1")
    assert history(tmp_path).load()[0] == samples(0)


def test_a_file_that_is_no_history_is_said_and_left_out(tmp_path: Path) -> None:
    history(tmp_path).save(samples(0), job="1")
    (folder,) = tmp_path.iterdir()
    (folder / "2.jsonl").write_text('{"second": 1}\n')
    (folder / "3.jsonl").write_bytes(b"\xff{")
    found, words = history(tmp_path).load()
    assert found == samples(0)
    assert words == "1 samples of 1 earlier jobs, 2 files could not be read"


def test_the_oldest_jobs_are_forgotten(tmp_path: Path) -> None:
    for job in range(JOBS + 3):
        history(tmp_path).save(samples(job), job=f"{job:04}")
    assert [one.second for one in history(tmp_path).load()[0]] == list(range(3, JOBS + 3))


def test_a_folder_that_cannot_be_made_is_told_and_nothing_is_raised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    problem = history(tmp_path / "file").save(samples(0), job="1")
    assert "Not a directory" in (problem or "") or "File exists" in (problem or "")
    assert history(tmp_path / "file").load() == ([], "0 samples of 0 earlier jobs")

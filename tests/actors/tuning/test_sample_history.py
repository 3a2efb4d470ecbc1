from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.actors.tuning.job_records import MOST_BYTES, read_record
from slackwater.actors.tuning.sample_history import JOBS, SampleHistory, job_files
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import ReleaseRule
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.stage_versions import stage_versions
from tests.support.flows import late_pair


def plan(name: str = "late: 1/2", tuning: sw.Tuning | None = None) -> Plan:
    with sw.Simulation(1) as nodes:
        return nodes.plan(late_pair(name, seconds=1, deadline="1s"), tuning=tuning)


def history(folder: Path, *, flow: str = "late: 1/2", most: int = 1_000) -> SampleHistory:
    return SampleHistory(folder, FlowGraph.of(plan(flow)), most=most)


def samples(*seconds: int, stage: str = "gate") -> list[StageSample]:
    return [
        StageSample(subject=Subject(stage), second=second, rule=ReleaseRule.slack(5))
        for second in seconds
    ]


def test_what_one_job_keeps_the_next_one_reads_job_after_job(tmp_path: Path) -> None:
    assert history(tmp_path).load() == ([], "0 samples of 0 earlier jobs")
    assert history(tmp_path).save(samples(0, 1), job="1") is None
    assert history(tmp_path).save(samples(0, 1), job="2") is None
    assert history(tmp_path).load() == (samples(0, 1, 0, 1), "4 samples of 2 earlier jobs")
    assert history(tmp_path, most=3).load()[0] == samples(1, 0, 1)


def test_a_record_says_of_which_version_of_the_flow_it_is(tmp_path: Path) -> None:
    kept = plan(tuning=sw.Tuning(history=tmp_path))
    assert FlowGraph.of(plan()).versions == {}, "nobody asks"
    graph = FlowGraph.of(kept)
    SampleHistory(tmp_path, graph, most=1_000).save(samples(0, 1), job="1")
    (path,) = job_files(tmp_path, graph.flow)
    record = read_record(path)
    assert record.versions == stage_versions(kept.stages)
    assert record.versions.keys() == {"fast", "slow", "gate", "out"}
    assert record.samples == samples(0, 1)


def test_a_record_of_an_earlier_release_has_no_version_and_still_teaches(tmp_path: Path) -> None:
    history(tmp_path).save(samples(0, 1), job="1")
    (path,) = job_files(tmp_path, "late: 1/2")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    record = read_record(path)
    assert record.versions == {}
    assert history(tmp_path).load()[0] == samples(0, 1)


@pytest.mark.parametrize("job", ['{"job": 1}', '{"job": {"versions": {"a": 1}}}', '{"job": {}}'])
def test_a_record_whose_versions_are_none_is_no_record(tmp_path: Path, job: str) -> None:
    (tmp_path / "1.jsonl").write_text(job + "\n")
    with pytest.raises(SettingError, match=r"file 1\.jsonl has no sample in line 1 of 1"):
        read_record(tmp_path / "1.jsonl")


def test_a_file_that_is_not_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history(tmp_path).save(samples(0, 1), job="1")
    (path,) = job_files(tmp_path, "late: 1/2")
    text = path.read_text()
    link = path.parent / "2.jsonl"
    link.symlink_to(path)
    with pytest.raises(SettingError, match=r"file 2\.jsonl is not read: .* is a link"):
        read_record(link)
    path.write_text(text[:-20])
    lines = len(text.splitlines())
    with pytest.raises(SettingError, match=rf"no sample in line {lines} of {lines}, half a file"):
        read_record(path)
    path.write_text(text)
    monkeypatch.setattr("slackwater.actors.tuning.job_records.MOST_BYTES", 10)
    with pytest.raises(SettingError, match="is longer than 10 bytes"):
        read_record(path)
    monkeypatch.setattr("os.geteuid", lambda: 4_321)
    with pytest.raises(SettingError, match="not of ours"):
        read_record(path)


@pytest.mark.parametrize(
    "odd",
    [
        {"interval_ns": 0},
        {"rows": -1},
        {"rows": 2**61},
        {"busy_ns": -1},
        {"arrived": [[0, 2**61]]},
        {"arrived": [[0, -1]]},
        {"ended": 1},
    ],
)
def test_counts_that_no_job_has_are_no_record(tmp_path: Path, odd: dict[str, Any]) -> None:
    (sample,) = samples(0)[:1]
    (tmp_path / "1.jsonl").write_text(json.dumps({**sample.to_json(), **odd}) + "\n")
    with pytest.raises(SettingError, match="has no sample in line 1"):
        read_record(tmp_path / "1.jsonl")


def test_records_are_told_the_newest_first(tmp_path: Path) -> None:
    for job in ("1", "3", "2"):
        history(tmp_path).save(samples(0, 1), job=job)
    assert [path.stem for path in job_files(tmp_path, "late: 1/2")] == ["3", "2", "1"]
    assert job_files(tmp_path, "another") == []


def test_samples_are_kept_in_the_order_of_their_seconds_however_slots_answered(
    tmp_path: Path,
) -> None:
    sent = [*samples(0, 2), *samples(0, 1, 2, stage="fast"), *samples(1)]
    history(tmp_path).save(sent, job="1")
    assert [one.second for one in history(tmp_path).load()[0]] == [0, 0, 1, 1, 2, 2]


def test_stages_that_the_flow_does_not_have_any_more_are_left_out(tmp_path: Path) -> None:
    history(tmp_path).save(samples(0, 1) + samples(0, stage="gone"), job="1")
    assert history(tmp_path).load()[0] == samples(0, 1)


NO_SAMPLES = [
    b'{"second": 1}',
    b"\xff{",
    b'{"stage": [], "second": 1}',
    b'{"stage": {}, "second": 1}',
    b'{"stage": "gate", "second": "1"}',
    b'{"stage": "gate", "second": -1}',
    b'{"stage": "gate", "second": true}',
    b'{"stage": "gate", "second": null}',
    b'{"stage": "gate", "second": 1, "slack_ns": 0.5}',
    b'{"stage": "gate", "second": 1, "rows": NaN}',
    b'{"stage": "gate", "second": 1, "rows": 1%s}' % (b"0" * 30),
    b"[" * 100_000,
    b"7",
]


@pytest.mark.parametrize(
    "found", NO_SAMPLES, ids=[found[:50].decode("latin1") for found in NO_SAMPLES]
)
def test_a_file_that_is_no_history_is_said_and_left_out(tmp_path: Path, found: bytes) -> None:
    history(tmp_path).save(samples(0, 1), job="1")
    (folder,) = tmp_path.iterdir()
    (folder / "2.jsonl").write_bytes(found + b"\n")
    assert history(tmp_path).load() == (
        samples(0, 1),
        "2 samples of 1 earlier jobs, 1 file could not be read",
    )


def test_the_oldest_jobs_are_forgotten(tmp_path: Path) -> None:
    for job in range(JOBS + 3):
        history(tmp_path).save(samples(job, job + 1), job=f"{job:04}")
    assert [one.second for one in history(tmp_path).load()[0]][::2] == list(range(3, JOBS + 3))


@pytest.mark.parametrize("seen", [(), (0,), (4, 4)])
def test_jobs_that_saw_next_to_nothing_push_out_no_calibration(
    tmp_path: Path, seen: tuple[int, ...]
) -> None:
    history(tmp_path).save(samples(0, 1), job="0")
    for job in range(1, JOBS + 3):
        assert "less than 2 seconds" in (history(tmp_path).save(samples(*seen), job=f"{job}") or "")
    assert history(tmp_path).load() == (samples(0, 1), "2 samples of 1 earlier jobs")


def test_flows_of_any_names_share_no_folder(tmp_path: Path) -> None:
    names = ["日本", "中国", "a/b", "a b", "a_b", "flow", "..", "x" * 300, "x" * 301]
    for second, name in enumerate(names):
        assert history(tmp_path, flow=name).save(samples(second, 100), job="1") is None
    for second, name in enumerate(names):
        assert history(tmp_path, flow=name).load()[0] == samples(second, 100)
    assert len(list(tmp_path.iterdir())) == len(names)
    assert (tmp_path / "a_b").is_dir()


def test_nobody_else_may_read_it_and_what_a_killed_job_left_goes(tmp_path: Path) -> None:
    history(tmp_path / "made").save(samples(0, 1), job="1")
    (folder,) = (tmp_path / "made").iterdir()
    killed, saving = folder / ".2.incomplete", folder / ".3.incomplete"
    for path in (killed, saving):
        path.write_text("{")
    an_hour_ago = time.time() - 3_600
    os.utime(killed, (an_hour_ago, an_hour_ago))
    history(tmp_path / "made").save(samples(0, 1), job="4")
    assert {path.name for path in folder.iterdir()} == {"1.jsonl", saving.name, "4.jsonl"}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "4.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_made_is_told_and_nothing_is_raised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    problem = history(tmp_path / "file").save(samples(0, 1), job="1")
    assert "Not a directory" in (problem or "") or "File exists" in (problem or "")
    assert history(tmp_path / "file").load() == ([], "0 samples of 0 earlier jobs")


def link(path: Path, tmp_path: Path) -> None:
    history(tmp_path / "else").save(samples(7, 8), job="1")
    (found,) = (tmp_path / "else").glob("*/1.jsonl")
    path.symlink_to(found)


def pipe(path: Path, tmp_path: Path) -> None:
    del tmp_path
    os.mkfifo(path)


def device(path: Path, tmp_path: Path) -> None:
    del tmp_path
    path.symlink_to("/dev/zero")


def sparse(path: Path, tmp_path: Path) -> None:
    del tmp_path
    path.touch()
    os.truncate(path, MOST_BYTES + 1)


def folder(path: Path, tmp_path: Path) -> None:
    del tmp_path
    path.mkdir()


@pytest.mark.timeout(20)  # a pipe that is opened waits for ever
@pytest.mark.parametrize("plant", [link, pipe, device, sparse, folder])
def test_what_is_no_file_of_ours_is_neither_followed_nor_waited_for(
    tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    history(tmp_path / "own").save(samples(0, 1), job="1")
    (place,) = (tmp_path / "own").iterdir()
    plant(place / "2.jsonl", tmp_path)
    found, words = history(tmp_path / "own").load()
    assert found == samples(0, 1)
    assert words == "2 samples of 1 earlier jobs, 1 file could not be read"


def test_a_folder_of_somebody_else_is_neither_read_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(tmp_path / "own").save(samples(0, 1), job="1")
    (place,) = (tmp_path / "own").iterdir()
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / place.name).symlink_to(place)
    cases = ((tmp_path / "others", "is not a folder"), (tmp_path / "own", "not of ours"))
    for path, told in cases:
        if told == "not of ours":
            monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # as if it were another's
        assert told in (history(path).save(samples(0, 1), job="2") or "")
        found, words = history(path).load()
        assert not found
        assert told in words
    assert [path.name for path in place.iterdir()] == ["1.jsonl"]

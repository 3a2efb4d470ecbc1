"""A coordinator in place of one that died: what it knows, and what it tidies up."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.actors.checkpoints.folder import commit
from slackwater.actors.checkpoints.part_files import write_part
from slackwater.actors.jobs import coordinator
from slackwater.actors.jobs.coordinator import Coordinator
from slackwater.actors.jobs.lasting import Checkpointing, Predecessor, remove_if
from slackwater.actors.jobs.records import JobRecord, Records, Worker
from slackwater.actors.jobs.start_order import StartOrder, save_order
from slackwater.runtime.measure.recovered import Recovery
from slackwater.runtime.recovery.attempts import Attempts
from tests.support.checkpoints import facts_of, part_of
from tests.support.reports import city_report
from tests.support.shelf import Shelf

S = 1_000_000_000
RECORD = JobRecord(
    id="city-1",
    flow="city",
    state="running",
    submitter="ann@desk",
    submitted_ns=1,
    started_ns=S,
    coordinator=Worker("node-1", "ab12", "10.0.0.1", 4711),
)


class Another(Coordinator):
    """A coordinator, without Ray, whose job is only asked for its report."""

    def __init__(self, folder: Path, record: JobRecord = RECORD) -> None:
        self._checkpoints = Checkpointing(1.0, str(folder))
        self._record, self._records = record, Records(Shelf())
        self._job: Any = None
        self._is_done, self._unwritten, self._is_unwanted = False, 0, False
        self._writing = threading.RLock()
        self._has_settled, self._has_ended = threading.Event(), threading.Event()
        self._may_leave = threading.Event()
        self.started: list[Predecessor | None] = []

    def _start(self, order: StartOrder, predecessor: Predecessor | None = None) -> None:
        assert order.pickled == b"plan"
        self.started.append(predecessor)


@pytest.fixture(autouse=True)
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "living_processes", lambda _: [])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    commit(tmp_path, 1, [write_part(tmp_path, part_of())], facts_of())
    save_order(str(tmp_path), "city-1", StartOrder(b"plan", {}, [], ""))
    return tmp_path


def with_record(folder: Path, state: str) -> Another:
    own = Another(folder)
    known = Recovery(at_s=2.0, cause="WorkerDied: a slot", checkpoint=1, gap_s=0.3)
    report = city_report()
    report.recoveries = [known]
    own._write(report, state=state)
    return own


def test_the_loss_of_a_coordinator_is_a_recovery_after_those_before(folder: Path) -> None:
    own = with_record(folder, "running")
    own._start_again()
    (predecessor,) = own.started
    assert predecessor is not None
    assert predecessor.cause is not None
    assert predecessor.report is not None
    now_ns = 70 * S
    attempts = Attempts(
        now_ns - 60 * S,
        is_repeatable=True,
        checkpoints=(7,),
        recoveries=predecessor.report.recoveries,
    )
    attempts.takes_over(predecessor.cause, now_ns)
    attempts.works(now_ns + S)
    assert [(r.at_s, r.checkpoint, r.gap_s) for r in attempts.recoveries] == [
        (2.0, 1, 0.3),
        (60.0, 7, 1.0),
    ]
    assert "the coordinator of the job (process 4711 on node node-1, host 10.0.0.1) has ended" in (
        attempts.recoveries[-1].cause
    )
    assert predecessor.age_ns > 60 * S


def test_a_job_that_is_done_is_not_begun_again_and_leaves_nothing(folder: Path) -> None:
    own = with_record(folder, "done")
    own._start_again()
    assert own._has_ended.is_set()
    assert (own.started, [*folder.iterdir()]) == ([], [])


def test_a_job_that_was_stopping_ends_and_keeps_its_checkpoints(folder: Path) -> None:
    own = with_record(folder, "running")
    own._write(is_stopping=True)
    own._start_again()
    assert own._has_ended.is_set()
    assert (own.started, own._record.state, own._record.error) == ([], "stopped", None)
    assert [path.name for path in folder.iterdir() if path.suffix == ".json"]
    assert not (folder / ".start-city-1").exists()


def test_a_stop_while_another_coordinator_begins_is_no_failure(folder: Path) -> None:
    own = with_record(folder, "running")
    own._is_unwanted = True
    (folder / ".start-city-1").unlink()  # so the start fails, as one that is given up does
    own._start_again()
    assert (own._record.state, own._record.error) == ("stopped", None)


def test_checkpoints_of_a_later_job_stay(folder: Path) -> None:
    own = with_record(folder, "done")
    (folder / ".start-city-1").unlink()  # it had tidied up; then another job used the folder
    there = sorted(folder.iterdir())
    own._start_again()
    assert sorted(folder.iterdir()) == there


def test_checkpoints_go_only_once_the_end_is_recorded(folder: Path) -> None:
    own = Another(folder)
    own._job = SimpleNamespace(report=city_report, tuner=SimpleNamespace(pids=[]))
    own._write(city_report())
    recorded: list[tuple[str, int]] = []

    def record_end() -> bool:
        done = own._record_done()
        own._write(city_report())  # as each few seconds
        known = own._records.read("city-1")
        assert known is not None
        recorded.append((known.state, len([*folder.glob("checkpoint-*.json")])))
        return done

    remove_if(lambda: False, folder, "city")
    assert [*folder.glob("checkpoint-*.json")]
    remove_if(record_end, folder, "city")
    assert recorded == [("done", 1)]
    assert not [*folder.glob("checkpoint-*")]
    assert own._record.state == "running", "who waits is told once all is tidied up"

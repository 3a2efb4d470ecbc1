"""The commands that ask a cluster, with a cluster that is a list of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from slackwater.actors.jobs.logs import LogPart
from slackwater.actors.jobs.records import JobRecord, find_record
from slackwater.cli import cluster_commands, main
from slackwater.runtime.errors import OperatorError, SlackwaterError, WorkerDied
from slackwater.runtime.measure.checkpoints import CheckpointReport
from slackwater.runtime.measure.report import JobReport
from tests.support.reports import city_report

PLACES = {"buses": "node-1", "jams": "node-2"}
RECORD = JobRecord(
    id="city-0a1b2c",
    flow="city",
    state="running",
    submitter="ann@desk",
    submitted_ns=1_700_000_000_000_000_000,
    started_ns=1_700_000_001_000_000_000,
    nodes=["node-1", "node-2"],
    placement=PLACES,
)


@dataclass
class FakeJob:
    """Runs until it was waited for as often as it has reports."""

    record: JobRecord = RECORD
    reports: list[JobReport] = field(default_factory=lambda: [city_report()])
    ends_with: SlackwaterError | KeyboardInterrupt | None = None
    ends_as: str = "done"
    stops_as: str = "stopped"
    checkpoints: str = "checkpoints each 1 s to kept"
    _told: int = 0

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def flow(self) -> str:
        return self.record.flow

    @property
    def placement(self) -> dict[str, str]:
        return self.record.placement

    @property
    def status(self) -> str:
        return self.record.state

    def report(self) -> JobReport:
        if not self.reports:
            raise WorkerDied("no report")
        return replace(self.reports[min(self._told, len(self.reports) - 1)], state=self.status)

    def wait(
        self, timeout: float | None = None, on_report: Callable[[JobReport], None] | None = None
    ) -> JobReport:
        self._told += 1
        if on_report is not None and self.reports:
            on_report(self.report())
        if timeout is None or self._told >= len(self.reports):
            self._told = len(self.reports)
            if isinstance(self.ends_with, KeyboardInterrupt):
                raise self.ends_with
            error = None if self.ends_with is None else str(self.ends_with)
            self.record = replace(self.record, state=self.ends_as, error=error)
            if self.ends_with is not None:
                raise self.ends_with
            return self.report()
        raise TimeoutError

    def stop(self) -> None:
        if self.status == "running":
            self.record = replace(self.record, state=self.stops_as)

    def logs(
        self, *, stage: str | None = None, tail: int | None = None, seen: Any = ()
    ) -> list[LogPart]:
        lines = ["more"] if seen else ["one", "two"][-(tail or 2) :]
        gone = LogPart("node-2", "node-2", "out", [], 0, "its node is gone (host 10.0.0.2)")
        here = LogPart("coordinator", "node-1", "err", lines, 8)
        return [here] if stage == "buses" else [here, gone]


@dataclass
class FakeCluster:
    there: list[FakeJob]
    asked: dict[str, Any] = field(default_factory=dict)

    def submit(self, flow: Any, **options: Any) -> FakeJob:
        self.asked = {"flow": flow.name, **options}
        return self.there[0]

    def jobs(self) -> list[FakeJob]:
        return self.there

    def job(self, wanted: str) -> FakeJob:
        found = find_record([job.record for job in self.there], wanted)
        return next(job for job in self.there if job.record is found)

    def explained(self, flow: Any, *, placement: Any) -> tuple[str, Any]:
        plan = type("Plan", (), {"slots": {**PLACES, **placement}})
        return f"{flow.name} goes to {placement}", plan


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCluster:
    made = FakeCluster([FakeJob()])

    @contextmanager
    def connected(address: str | None, module: Any = None) -> Iterator[FakeCluster]:
        made.asked["address"] = address
        yield made

    monkeypatch.setattr(cluster_commands, "connected", connected)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "city_flow.py").write_text("import slackwater as sw\nflow = sw.Dataflow('city')\n")
    return made


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, list(arguments))


def told(*arguments: str) -> dict[str, Any]:
    done = call(*arguments, "--json")
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_submit_prints_the_id_and_nothing_else_on_stdout(cluster: FakeCluster) -> None:
    done = call("submit", "city_flow.py", "--placement", "jams=node-2", "--placement", "*=node-1")
    assert (done.exit_code, done.stdout) == (0, "city-0a1b2c\n")
    assert cluster.asked == {
        "flow": "city",
        "placement": {"jams": "node-2", "*": "node-1"},
        "detach": True,
    }
    assert done.stderr.splitlines()[0] == FakeJob.checkpoints
    answer = told("submit", "city_flow.py")
    assert (answer["placement"], answer["checkpoints"]) == (PLACES, FakeJob.checkpoints)


@pytest.mark.parametrize("wish", ["jams", "jams=", "=node-2"])
def test_a_placement_that_is_none_is_wrong_usage(cluster: FakeCluster, wish: str) -> None:
    done = call("submit", "city_flow.py", "--placement", wish)
    assert done.exit_code == 2
    assert "is not STAGE=SLOT" in done.stderr


def test_submit_can_wait_for_the_report(cluster: FakeCluster) -> None:
    done = call("submit", "city_flow.py", "--wait")
    assert done.exit_code == 0, done.output
    assert "job city-0a1b2c" in done.stderr
    assert "balanced" in done.stdout


def test_a_job_that_fails_while_submit_waits_shows_its_report_and_exits_with_1(
    cluster: FakeCluster,
) -> None:
    cluster.there[0].ends_with, cluster.there[0].ends_as = OperatorError("step 'x': no"), "failed"
    done = call("submit", "city_flow.py", "--wait")
    assert done.exit_code == 1
    assert "city  failed" in done.stdout
    cluster.there[0].record = RECORD
    cluster.there[0].reports = []
    done = call("submit", "city_flow.py", "--wait")
    assert done.exit_code == 1
    assert done.stderr.endswith("\nslackwater: step 'x': no\n")


def test_ctrl_c_while_submit_waits_leaves_the_job_alone(cluster: FakeCluster) -> None:
    cluster.there[0].ends_with = KeyboardInterrupt()
    done = call("submit", "city_flow.py", "--wait")
    assert done.exit_code == 130
    assert "job city-0a1b2c goes on; `slackwater stop city-0a1b2c` ends it" in done.stderr
    assert cluster.there[0].status == "running"


def test_jobs_lists_who_runs_what_and_why_one_failed(cluster: FakeCluster) -> None:
    failed = replace(RECORD, id="bay-000001", state="failed", error="step 'x': no\nTraceback")
    cluster.there.append(FakeJob(failed))
    done = call("jobs", "--address", "here:1")
    assert cluster.asked == {"address": "here:1"}
    assert [line.split()[:4] for line in done.stdout.splitlines()[-3:-1]] == [
        ["city-0a1b2c", "city", "running", "ann@desk"],
        ["bay-000001", "city", "failed", "ann@desk"],
    ]
    assert done.stdout.splitlines()[-1] == "bay-000001: step 'x': no"
    assert [one["id"] for one in told("jobs")["jobs"]] == ["city-0a1b2c", "bay-000001"]
    cluster.there.clear()
    assert "slackwater submit" in call("jobs").stderr
    assert told("jobs") == {"jobs": []}


def test_status_of_a_job_is_its_record_and_its_report(cluster: FakeCluster) -> None:
    done = call("status", "city")
    assert done.exit_code == 0
    assert "ann@desk" in done.stdout
    assert "city  running" in done.stdout
    said = told("status", "city")
    assert (said["job"]["id"], said["report"]["state"]) == ("city-0a1b2c", "running")


def test_a_lost_job_shows_what_is_left_of_it_and_exits_with_1(cluster: FakeCluster) -> None:
    cluster.there[0].record = replace(RECORD, state="lost", error="job city-0a1b2c is lost: …")
    for command in ("status", "latency"):
        done = call(command, "city")
        assert done.exit_code == 1
        assert "city  lost" in done.stdout
        assert done.stderr == "slackwater: job city-0a1b2c is lost: …\n"
    cluster.there[0].reports = []
    assert told("status", "city")["report"] is None


@pytest.mark.parametrize("command", ["status", "latency"])
def test_watching_shows_it_until_the_job_ends(cluster: FakeCluster, command: str) -> None:
    cluster.there[0].reports = [city_report(n) for n in (100, 200, 300)]
    done = call(command, "city", "--watch", "--json")
    states = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one.get("state") or one["report"]["state"] for one in states] == [
        *["running"] * 3,
        "done",
    ]


def test_watching_a_folder_is_wrong_usage(cluster: FakeCluster) -> None:
    assert call("status", "--watch").exit_code == 2
    assert call("status", "--address", "auto").exit_code == 2


def test_an_unknown_job_is_refused_with_the_nearest(cluster: FakeCluster) -> None:
    for command in ("status", "latency", "logs", "stop"):
        done = call(command, "sity")
        assert done.exit_code == 1
        assert "the nearest is 'city-0a1b2c'" in done.stderr


def test_logs_name_the_process_of_each_line_and_the_node_that_is_gone(
    cluster: FakeCluster,
) -> None:
    done = call("logs", "city", "--tail", "1")
    assert done.exit_code == 0
    assert done.stdout == "coordinator on node-1 err | two\n"
    assert done.stderr == "slackwater: no log of node-2: its node is gone (host 10.0.0.2)\n"
    assert told("logs", "city", "--stage", "buses")["logs"][0]["lines"] == ["one", "two"]


def test_followed_logs_go_on_until_the_job_has_ended(cluster: FakeCluster) -> None:
    done = call("logs", "city", "--follow", "--stage", "buses")
    assert [line.split(" | ")[1] for line in done.stdout.splitlines()] == ["one", "two", "more"]


@pytest.mark.parametrize(("state", "goes_on"), [("stopped", True), ("done", False)])
def test_stop_names_the_way_on_only_of_a_job_that_is_not_done(
    cluster: FakeCluster, state: str, goes_on: bool
) -> None:
    kept = CheckpointReport(every_s=1, folder="kept", interval_s=1, number=3)
    cluster.there[0].reports = [replace(city_report(), checkpoint=kept)]
    cluster.there[0].stops_as = state
    said = call("stop", "city-0").output
    assert f"job city-0a1b2c: {state}\n" in said
    assert ("goes on from checkpoint 3 in kept" in said) is goes_on


def test_stop_says_what_the_job_was_before(cluster: FakeCluster) -> None:
    assert call("stop", "city-0").stdout == "job city-0a1b2c: stopped\n"
    assert call("stop", "city-0").stdout == "job city-0a1b2c had ended before: stopped\n"
    assert told("stop", "city-0") == {"job": "city-0a1b2c", "was": "stopped", "state": "stopped"}


def test_explain_shows_where_it_will_run_on_a_cluster(cluster: FakeCluster) -> None:
    done = call("explain", "city_flow.py", "--address", "here:1", "--placement", "jams=node-9")
    assert done.stdout == "city goes to {'jams': 'node-9'}\n"
    said = told("explain", "city_flow.py", "--address", "here:1")
    assert said["placement"] == PLACES
    assert call("explain", "city_flow.py", "--placement", "jams=node-9").exit_code == 2

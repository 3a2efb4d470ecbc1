"""`slackwater doctor` on hosts with sshd: before `ray up`, after it, and with faults put in."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.hosts import Hosts, why_not
from tests.hosts.conftest import CLUSTER_YAML, RayHosts
from tests.support.waiting import until

pytestmark = pytest.mark.hosts

WITH_TOKEN = {"RAY_AUTH_MODE": "token"}
DOCTOR_S = 120.0


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    if reason := why_not():
        pytest.skip(reason)
    with Hosts(2) as made:
        made.write_cluster_yaml(CLUSTER_YAML)
        yield made


def doctor(hosts: Hosts, *words: str) -> subprocess.CompletedProcess[str]:
    return hosts.outside.run(["slackwater", "doctor", *words], timeout=DOCTOR_S, env=WITH_TOKEN)


def test_hosts_that_wait_for_ray_up_are_well(hosts: Hosts) -> None:
    done = doctor(hosts, CLUSTER_YAML)
    assert "problem" not in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr
    for host in hosts.hosts:
        assert f"ssh lets us in, as {host.name}" in done.stdout
        assert f"{host.ip}" in done.stdout
    assert "port 6379 (Ray itself) is free" in done.stdout
    assert hosts.token not in done.stdout + done.stderr


def test_each_fault_of_a_host_is_named_with_the_host(hosts: Hosts) -> None:
    head, worker = hosts.hosts
    head.run(
        ["sh", "-c", "mkdir -p ~/.ray; echo x > ~/.ray/auth_token; chmod 644 ~/.ray/auth_token"]
    )
    squatter = head.popen(["python3", "-m", "http.server", "8265"], stderr=subprocess.DEVNULL)
    try:
        until(lambda: ":8265" in head.run(["ss", "-ltn"]).stdout, within_s=30, what="the squatter")
        worker.kill()
        done = doctor(hosts, CLUSTER_YAML, "--json")
    finally:
        squatter.kill()
        squatter.wait()
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads(done.stdout)["findings"]
    wrong = [(one["about"], one["text"]) for one in found if one["level"] == "problem"]
    assert [about for about, _ in wrong] == [f"{head.ip} (head)"] * 2 + [worker.ip]
    assert "port 8265 (dashboard and jobs) is taken by python3, process" in wrong[0][1]
    assert "~/.ray/auth_token has mode 0644" in wrong[1][1]
    assert "not reachable" in wrong[2][1]


def test_a_key_that_opens_nothing_is_said(hosts: Hosts) -> None:
    path = hosts.outside.path(CLUSTER_YAML)
    path.write_text(path.read_text().replace("ssh_user: root", "ssh_user: nobody"))
    done = doctor(hosts, CLUSTER_YAML)
    assert done.returncode == 1
    assert done.stdout.count("ssh does not let us in: ") == 2
    assert "Permission denied" in done.stdout


def test_a_cluster_that_is_up_is_well_seen_from_both_sides(ray_hosts: RayHosts) -> None:
    before = doctor(ray_hosts.hosts, CLUSTER_YAML)
    assert before.returncode == 0, before.stdout + before.stderr
    assert before.stdout.count("is Ray's") == 3
    assert before.stdout.count("its token is for its owner alone") == 3
    after = doctor(ray_hosts.hosts, "--address", ray_hosts.client_address)
    assert after.returncode == 0, after.stdout + after.stderr
    assert "asks for a token, and takes ours" in after.stdout
    for host in ray_hosts.hosts.hosts:
        assert f"{host.name}" in after.stdout
    assert after.stdout.count("as here") == 3
    assert after.stdout.count(" behind ours, ±") + after.stdout.count(" ahead of ours, ±") == 3

"""The hosts themselves: are they separate, do they go at once, is nothing left of them?"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts import Host, Hosts, why_not
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("net", "pid", "mnt", "uts", "ipc")
NO_HOSTS = why_not()
NO_DELAYS = why_not(delayed=True)

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.skipif(NO_HOSTS is not None, reason=str(NO_HOSTS)),
]


@pytest.fixture(scope="module")
def pair() -> Iterator[Hosts]:
    with Hosts(2) as hosts:
        yield hosts


def said(host: Host, *argv: str) -> str:
    done = host.run(argv)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_hosts_reach_each_other_by_name_and_by_ssh(pair: Hosts) -> None:
    first, second = pair.hosts
    assert max(first.ping(second, 3)) < 1_000
    login = ["ssh", "-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes", second.name]
    assert said(pair.outside, *login, "hostname") == second.name


def test_only_outside_has_a_key_and_a_token(pair: Hosts) -> None:
    for host in (*pair.hosts, pair.outside):
        private = "ls ~/.ssh/id_ed25519 ~/.ray/auth_token"
        assert (host.run(["sh", "-c", private]).returncode == 0) is (host is pair.outside)
    assert said(pair.outside, "stat", "-c", "%a", "/srv/user/.ray/auth_token") == "600"


def test_each_host_has_its_own_processes_files_and_home(pair: Hosts) -> None:
    first, second = pair.hosts
    assert len(
        {os.readlink(f"/proc/{host.pid}/ns/{kind}") for host in pair.hosts for kind in KINDS}
    ) == 2 * len(KINDS)
    assert int(said(first, "sh", "-c", "echo $$")) < 1_000
    for folder in ("/tmp", "/dev/shm", "/run", "/etc", "/srv/user", str(ROOT)):  # noqa: S108
        said(first, "touch", f"{folder}/only-here")
        assert not second.path(f"{folder}/only-here").exists(), folder
        assert not Path(f"{folder}/only-here").exists(), folder


def test_the_tests_own_environment_stays_out(pair: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACKWATER_SECRET", "x")
    assert "SLACKWATER_SECRET" not in said(pair.outside, "env")
    assert "ASKED_FOR=1" in pair.outside.run(["env"], env={"ASKED_FOR": "1"}).stdout


def test_a_command_that_takes_too_long_is_killed_in_the_host(pair: Hosts) -> None:
    host = pair.hosts[0]
    with pytest.raises(subprocess.TimeoutExpired):
        host.run(["sh", "-c", "sleep 1234; true"], timeout=0.3)
    until(lambda: "sleep 1234" not in said(host, "ps", "ax"), within_s=5, what="the sleeper's end")


def test_an_unplugged_host_says_no_goodbye_and_may_come_back(pair: Hosts) -> None:
    first, second = pair.hosts
    second.unplug()
    assert second.ping(first, 1, timeout_s=0.2) == [float("inf")]
    second.plug()
    until(lambda: first.ping(second, 1)[0] < 1_000, within_s=10, what="the link")


@pytest.mark.parametrize(
    "delay_ms",
    [
        0.0,
        pytest.param(1.0, marks=pytest.mark.skipif(NO_DELAYS is not None, reason=str(NO_DELAYS))),
    ],
)
def test_a_killed_host_is_gone_and_its_connections_hear_nothing(delay_ms: float) -> None:
    listen = """
import socket
connection, _ = socket.create_server(("", 9000)).accept()
connection.sendall(b"x")
connection.recv(1)
"""
    connect = """
import socket, sys
sock = socket.create_connection((sys.argv[1], 9000))
print(sock.recv(1), flush=True)
sock.settimeout(1.0)
try:
    print("end", sock.recv(1))
except TimeoutError:
    print("silence")
"""
    with Hosts(2, delay_ms=delay_ms) as hosts:
        first, second = hosts.hosts
        with second.popen(["python3", "-c", listen]) as server:
            until(lambda: ":9000" in said(second, "ss", "-ltn"), within_s=10, what="the server")
            command = ["python3", "-u", "-c", connect, second.ip]
            with first.popen(command, stdout=subprocess.PIPE) as client:
                assert client.stdout is not None
                assert client.stdout.readline() == "b'x'\n"
                second.kill()
                assert server.wait(timeout=5) != 0
                assert client.communicate(timeout=10)[0] == "silence\n"
        with pytest.raises(RuntimeError, match="host-2 was killed"):
            second.run(["true"])
        assert max(hosts.outside.ping(first, 3)) < 1_000, "the others go on"


def pings(first: Host, second: Host, *, near_ms: float) -> list[float]:
    """Ping until one was as quick as the links allow: a busy machine makes any number slower."""
    round_trips_ms: list[float] = []
    for _ in range(20):
        round_trips_ms += first.ping(second, 10)
        if min(round_trips_ms) < near_ms + 0.3:
            break
    return round_trips_ms


@pytest.mark.skipif(NO_DELAYS is not None, reason=str(NO_DELAYS))
@pytest.mark.parametrize("delay_ms", [0.5, 1.0, 5.0, 20.0])
def test_a_round_trip_takes_twice_the_delay(delay_ms: float) -> None:
    with Hosts(2, delay_ms=delay_ms) as hosts:
        round_trips_ms = pings(hosts.hosts[0], hosts.hosts[1], near_ms=2 * delay_ms)
    assert min(round_trips_ms) == pytest.approx(2 * delay_ms, abs=max(0.3, 0.2 * delay_ms))


@pytest.mark.skipif(NO_DELAYS is not None, reason=str(NO_DELAYS))
def test_a_far_host_is_far_from_all_others_and_they_are_near_each_other() -> None:
    with Hosts(2, delay_ms={"host-2": 3.0}) as hosts:
        first, second = hosts.hosts
        assert min(pings(first, second, near_ms=6.0)) == pytest.approx(6.0, abs=0.6)
        assert min(pings(first, hosts.outside, near_ms=0.0)) < 0.5


def test_a_delay_for_no_host_is_refused() -> None:
    with pytest.raises(ValueError, match="host-9"):
        Hosts(2, delay_ms={"host-9": 1.0})


def test_a_host_gets_no_more_cpu_than_its_quota() -> None:
    burn = """
import time
end = time.monotonic() + 1
while time.monotonic() < end:
    pass
print(time.process_time())
"""
    with Hosts(1, cpus=0.25) as hosts:
        if hosts.hosts[0].cgroup is None:
            pytest.skip("CPU quotas need a writable cgroup v1 cpu controller")
        assert float(said(hosts.hosts[0], "python3", "-S", "-c", burn)) < 0.5


def remains(namespaces: set[str], cgroups: list[str], folder: Path) -> list[str]:
    """Return what is left of hosts that had these namespaces, cgroups and this folder."""
    found = [name for name in (*cgroups, str(folder)) if Path(name).exists()]
    found += [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]
    for process in Path("/proc").glob("[0-9]*"):
        for kind in KINDS:
            with contextlib.suppress(OSError):  # it ended while we looked
                if os.readlink(process / "ns" / kind) in namespaces:
                    found.append(f"{process}: {(process / 'cmdline').read_text()}")
    return found


def traces(hosts: Hosts) -> tuple[set[str], list[str], Path]:
    """Return what `remains` is to look for; the hosts are still there."""
    every = (*hosts.hosts, hosts.outside)
    namespaces = {os.readlink(f"/proc/{host.pid}/ns/{kind}") for host in every for kind in KINDS}
    assert hosts.folder is not None
    return namespaces, [host.cgroup for host in every if host.cgroup], hosts.folder


@pytest.mark.parametrize("delay_ms", [0.0, 1.0])
def test_nothing_is_left_of_hosts_that_were_closed(delay_ms: float) -> None:
    if delay_ms and NO_DELAYS:
        pytest.skip(NO_DELAYS)
    with Hosts(2, cpus=1.0, delay_ms=delay_ms) as hosts:
        hosts.hosts[0].run(["sh", "-c", "setsid sleep 1234 >/dev/null 2>&1 &"])
        left = traces(hosts)
        assert remains(*left)
    assert not remains(*left)


def test_nothing_is_left_when_the_test_process_is_killed() -> None:
    script = """
import json
from tests.hosts import Hosts
from tests.hosts.test_hosts import traces
with Hosts(2, cpus=1.0) as hosts:
    hosts.hosts[0].popen(["sleep", "1234"])
    namespaces, cgroups, folder = traces(hosts)
    print(json.dumps([sorted(namespaces), cgroups, str(folder)]), flush=True)
    input()
"""
    with subprocess.Popen(  # noqa: S603 the lines above
        [sys.executable, "-c", script],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as test:
        assert test.stdout is not None
        namespaces, cgroups, folder = json.loads(test.stdout.readline())
        test.send_signal(signal.SIGKILL)
        until(
            lambda: not remains(set(namespaces), cgroups, Path(folder)),
            within_s=10,
            what="the hosts of a killed test to be gone",
        )

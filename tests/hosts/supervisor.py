"""The process that makes the test hosts and outlives the test, to take them down.

```
test ── pipe ──▶ supervisor (network namespace of its own: the bridge)
                   ├─▶ switch, if links are delayed
                   ├─▶ host-1's init (pid 1 of its namespaces) ─▶ sshd ─▶ …
                   ├─▶ host-2's init …
```

Whoever kills the supervisor kills the inits (PR_SET_PDEATHSIG), and the system ends a PID namespace
with its init, a network namespace with its last process, mounts with their last user. So a host
leaves nothing; the supervisor itself removes the cgroups and the folder, when the pipe closes.

The plan comes as a line of JSON on stdin, then orders ("unplug host-1"), a line each; answers go as
lines of JSON to stdout. Run by a Python without site-packages: `python -S -m
tests.hosts.supervisor`.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.hosts.host_init import become_host
from tests.hosts.switch import MTU, PLUGGED, carry_frames, mac_address
from tests.hosts.system import (
    CLONE_NEWNET,
    CLONE_NEWPID,
    die_with_parent,
    ip,
    open_tap,
    set_namespace,
    unshare,
)

LOOK_S = 1.0  # between two looks at the parent, if a child of the test holds the pipe open
TAKE_DOWN_S = 20.0
CPU_PERIOD_US = 20_000  # short, so that a host out of its share waits little at a time
BRIDGE = "hosts"


class HostSupervisor:
    """The hosts of one plan: {"hosts": [{"name", "ip", "cable_ns"}, …], "delayed", "cpus", …}."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.folder = Path(plan["folder"])
        self.hosts: list[dict[str, Any]] = plan["hosts"]
        self.pids: dict[str, int] = {}  # {host: pid of its init}
        self.others: list[int] = []  # pids of our children that are no host
        self.cgroups: list[Path] = []
        self.plugs = mmap.mmap(-1, len(self.hosts))  # shared with the switch
        self.plugs[:] = bytes([PLUGGED]) * len(self.hosts)
        self.taps: list[int] = []

    def make_hosts(self) -> dict[str, Any]:
        """Make everything; return what the test must know."""
        own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        unshare(CLONE_NEWNET)
        ip("link", "set", "lo", "up")
        if not self.plan["delayed"]:
            ip("link", "add", BRIDGE, "type", "bridge")
            ip("link", "set", BRIDGE, "up")
        inits = []
        for port, host in enumerate(self.hosts):
            go_read, go_write = os.pipe()
            said_read, said_write = os.pipe()
            unshare(CLONE_NEWPID)  # of the next child
            pid = os.fork()
            if pid == 0:
                os.close(go_write)
                run_init(self.plan, port, go_read, said_write)
            set_namespace(own_pids, CLONE_NEWPID)
            os.close(go_read)
            os.close(said_write)
            self.pids[host["name"]] = pid
            inits.append((go_write, os.fdopen(said_read)))
        for port, (go, said) in enumerate(inits):
            expect(said, "network", self.hosts[port]["name"])
            self.connect(port)
            self.limit_cpu(self.hosts[port])
            os.write(go, b"go\n")
            os.close(go)
        if self.plan["delayed"]:
            self.start_switch()
        for port, (_, said) in enumerate(inits):
            expect(said, "ready", self.hosts[port]["name"])
            said.close()
        return {
            "pids": self.pids,
            "supervisor": os.getpid(),
            "cgroups": [str(c) for c in self.cgroups],
        }

    def connect(self, port: int) -> None:
        """Give a host its eth0, the other end of which is a port of the bridge or the switch."""
        pid = str(self.pids[self.hosts[port]["name"]])
        name = f"port{port}"
        if self.plan["delayed"]:
            self.taps.append(open_tap(name))
            ip("link", "set", name, "address", mac_address(port), "mtu", str(MTU))
            ip("link", "set", name, "netns", pid, "name", "eth0")
        else:
            ip(*f"link add {name} type veth peer name eth0 netns {pid}".split())
            ip("link", "set", name, "master", BRIDGE, "up")

    def limit_cpu(self, host: dict[str, Any]) -> None:
        """Put a host's init, and so all that it starts, under its CPU quota."""
        if not host["cgroup"]:
            return
        group = Path(host["cgroup"])
        group.mkdir()
        self.cgroups.append(group)
        (group / "cpu.cfs_period_us").write_text(str(CPU_PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(round(self.plan["cpus"] * CPU_PERIOD_US)))
        (group / "cgroup.procs").write_text(str(self.pids[host["name"]]))

    def start_switch(self) -> None:
        """Fork the process that carries the frames."""
        pid = os.fork()
        if pid == 0:
            try:
                die_with_parent(signal.SIGKILL)
                carry_frames(self.taps, [host["cable_ns"] for host in self.hosts], self.plugs)
            finally:
                os._exit(1)
        self.others.append(pid)

    def obey(self, line: str) -> dict[str, Any]:
        """Carry out one order."""
        order, name = line.split()
        port = next(i for i, host in enumerate(self.hosts) if host["name"] == name)
        if order in ("unplug", "plug"):
            self.plugs[port] = PLUGGED if order == "plug" else 0
            if not self.plan["delayed"] and name in self.pids:
                ip("link", "set", f"port{port}", "up" if order == "plug" else "down")
        elif order == "kill":
            self.obey(f"unplug {name}")  # or its sockets would still say goodbye
            if name in self.pids:
                kill_and_wait([self.pids.pop(name)])
        else:
            raise ValueError(f"no such order: {line!r}")
        return {"done": line}

    def take_down(self) -> None:
        """End every child, and remove what the system does not remove by itself."""
        kill_and_wait([*self.pids.values(), *self.others])
        give_up_s = time.monotonic() + TAKE_DOWN_S
        for group in self.cgroups:
            while group.exists() and time.monotonic() < give_up_s:
                try:
                    group.rmdir()
                except OSError:  # its last processes are not quite gone
                    time.sleep(0.02)
        shutil.rmtree(self.folder, ignore_errors=True)


def run_init(plan: dict[str, Any], port: int, go: int, said: int) -> None:
    """Be a host's first process; never returns."""
    try:
        die_with_parent(signal.SIGKILL)
        become_host(plan, port, os.fdopen(go), os.fdopen(said, "w", buffering=1))
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(said, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(1)  # it must not go on as a second supervisor


def expect(said: Any, word: str, host: str) -> None:
    """Read what a host's init says next, which must be `word`."""
    line = said.readline().strip()
    if line != word:
        raise RuntimeError(f"{host} did not come as far as {word!r}: {line or 'it ended'}")


def kill_and_wait(pids: list[int]) -> None:
    """Kill children, and return when they are gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def orders(driver_pid: int) -> Iterator[str]:
    """Yield lines from stdin until the test closes it, or is gone."""
    rest = b""
    while os.getppid() == driver_pid:
        if select.select([0], [], [], LOOK_S)[0]:
            read = os.read(0, 4096)
            if not read:
                return
            *lines, rest = (rest + read).split(b"\n")
            yield from (line.decode() for line in lines)


def main() -> None:
    """Make the hosts, obey, take them down."""
    lines = orders(os.getppid())
    supervisor = HostSupervisor(json.loads(next(lines)))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    try:
        print(json.dumps(supervisor.make_hosts()), flush=True)  # noqa: T201
        for line in lines:
            print(json.dumps(supervisor.obey(line)), flush=True)  # noqa: T201
    except BrokenPipeError:
        pass  # the test is gone
    except Exception as error:  # the test raises it
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)  # noqa: T201
    finally:
        supervisor.take_down()


if __name__ == "__main__":
    main()

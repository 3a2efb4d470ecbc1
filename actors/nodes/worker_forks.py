"""Stands in for the program of Ray's workers on local nodes: the first loads Ray, others copy it.

A worker is a Python that loads Ray, NumPy, Arrow and us, most of a second of CPU before it does
anything. The first on a node does so and stays as it is then, and its copies (forks) are the
workers: one in its own place, and one for whatever process the raylet starts later, which asks
for it and ends. Who is to run in another environment, because of a runtime_env or for another
driver, loads all by itself, and so does everybody once the first is gone. It ends with its
raylet. Run by the raylet, as a file, with what to load, the path of Ray's program, and that
one's arguments.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from pathlib import Path
from typing import Any

__all__ = ["main"]

PRELOAD = "--preload="
RAYS_OWN = ("ray._private.worker", "ray._private.node", "numpy", "pyarrow")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # while NumPy is loaded
PR_SET_PDEATHSIG = 1
BACKLOG = 128
IS_FORKED, IS_REFUSED = b"+", b"-"


def main(arguments: list[str]) -> None:
    """Be a worker, or have a copy of the first one be it.

    Args:
        arguments: `--preload=MODULE,MODULE PROGRAM --raylet-name=SOCKET …`.
    """
    modules = arguments.pop(0).removeprefix(PRELOAD).split(",")
    wanted = {
        "arguments": arguments,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "python": sys.executable,
        "group": os.getpgrp(),
    }
    listening = None
    with contextlib.suppress(OSError):
        path = _path_beside_the_raylets(arguments)
        listening = _listening_as_the_first(path)
        if listening is None and _is_copied(path, wanted):
            return
    if listening is not None:
        wanted = _wanted_of_a_copy(listening, wanted, modules)  # returns in copies only
    _be(wanted)


def _path_beside_the_raylets(arguments: list[str]) -> Path:
    (raylet,) = (word for word in arguments if word.startswith("--raylet-name="))
    path = Path(raylet.partition("=")[2])
    return path.with_name(path.name.replace("raylet", "forks", 1))  # no longer: it has a limit


def _listening_as_the_first(path: Path) -> socket.socket | None:
    """Return a socket that listens at the path; None: another is there, and listens already."""
    own = path.with_name(f"f{os.getpid()}")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(own))
    listening.listen(BACKLOG)
    try:
        os.link(own, path)
    except FileExistsError:
        listening.close()
        return None
    finally:
        own.unlink()
    return listening


def _is_copied(path: Path, wanted: dict[str, Any]) -> bool:
    """Ask the first for a copy that is this worker; return whether there is one."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(path))
        asking.sendall(json.dumps(wanted).encode())
        asking.shutdown(socket.SHUT_WR)
        return asking.recv(1) == IS_FORKED  # however long it takes: there must not be two


def _wanted_of_a_copy(
    listening: socket.socket, first: dict[str, Any], modules: list[str]
) -> dict[str, Any]:
    """Load what all need, and go on as copies: one in our own place, and one for whoever asks.

    Returns, in a copy, what it is to be.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for copies that have ended
    _preload([*RAYS_OWN, *modules])
    if os.fork() == 0:
        listening.close()  # else others would be heard here, and not answered, when we are gone
        return first
    # The raylet kills what is left of a worker's process group when that worker has ended. The
    # first copy keeps this one, and we are none of its.
    os.setpgid(0, os.getpgid(os.getppid()))
    while True:
        with listening.accept()[0] as asked, contextlib.suppress(OSError, ValueError):
            wanted: dict[str, Any] = json.loads(asked.makefile("rb").read())
            if _place(wanted) != _place(first):
                asked.sendall(IS_REFUSED)
            elif os.fork() == 0:
                if _has_answered(asked, wanted["group"]):
                    listening.close()
                    return wanted
                os._exit(1)  # who asked has ended; a copy that went on here would be the first


def _has_answered(asked: socket.socket, group: int) -> bool:
    """Join the group of who asked, which is there until they hear of it, and tell them."""
    try:
        os.setpgid(0, group)
        asked.sendall(IS_FORKED)
    except OSError:
        return False
    return True


def _place(wanted: dict[str, Any]) -> tuple[Any, ...]:
    """What a copy cannot change: Ray reads its environment, the driver's job too, as it loads."""
    return wanted["python"], wanted["environment"]


def _preload(modules: list[str]) -> None:
    threads = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)  # Ray would say so to a worker before it loads NumPy
    for name in filter(None, modules):
        with contextlib.suppress(Exception):  # who needs it will say so
            importlib.import_module(name)
    for name, value in threads.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    gc.collect()
    gc.freeze()  # else the collector's marks in all objects would copy their pages


def _be(wanted: dict[str, Any]) -> None:
    """Run the worker's program in this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(wanted["folder"])
    program = wanted["arguments"][0]
    sys.argv = wanted["arguments"]
    sys.path[0] = str(Path(program).parent)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # else all copies would draw alike
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])

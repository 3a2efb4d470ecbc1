"""Fork workers of a local node from a process that has loaded Ray and Slackwater.

```
raylet ──▶ python (this file, bare) ── command, files ──▶ server ──fork──▶ worker
                 ◀───────────────────── "it runs"
```

A worker takes a second of CPU to load its modules; a fork has them. The raylet runs this file with
the command of a worker. The first such process becomes the server of its environment, which has the
ids of the raylet and of Ray's job; the next ones ask it for a fork and end. A server ends with its
raylet, or once its forks have ended and none was asked for in a minute. A process that gets no
answer becomes the worker that Ray meant.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["main"]

SERVE = "--serve="
KIND = socket.SOCK_SEQPACKET
MOST_BYTES = 2**17  # of a command
BACKLOG = 128
IDLE_S = 60.0
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that keep NumPy in a server from starting threads: a fork would lack them."""
ENDURE_FORKS = {"jemalloc_bg_thd"}
"""Threads that a server may have: jemalloc, which Arrow loads, does their work itself in a fork."""


def main(arguments: list[str]) -> None:
    """Start a worker; or, given a listening socket, be the server.

    Args:
        arguments: folder of the sockets, then a worker's command after `python`; for the server,
            `--serve=FD`, the socket's path, and the command of its first worker.
    """
    if arguments[0].startswith(SERVE):
        serve(int(arguments[0].removeprefix(SERVE)), Path(arguments[1]), arguments[2:])
    else:
        start(Path(arguments[0]), arguments[1:])


def start(folder: Path, command: list[str]) -> NoReturn:
    """Let the server of this environment fork the worker, or become the server."""
    same = (sorted(os.environb.items()), os.getcwd(), sys.executable)
    address = folder / f"warm-{hashlib.sha256(repr(same).encode()).hexdigest()[:16]}"
    if not address.exists():
        become_server(address, command)
    try:
        with socket.socket(socket.AF_UNIX, KIND) as link:
            link.connect(str(address))
            socket.send_fds(link, ["\0".join(command).encode()], [0, 1, 2])
            if link.recv(1):
                os._exit(0)
    except OSError:
        pass  # the server has ended
    execute(command)


def become_server(address: Path, command: list[str]) -> None:
    """Become the server of an address; return if another process has become it."""
    part = address.with_name(f"{address.name}.{os.getpid()}")
    with socket.socket(socket.AF_UNIX, KIND) as listening:
        listening.bind(str(part))
        listening.listen(BACKLOG)
        try:
            os.link(part, address)  # a process that sees the address can connect
        except FileExistsError:
            return
        finally:
            part.unlink()
        listening.set_inheritable(True)
        serves = [__file__, f"{SERVE}{listening.fileno()}", str(address)]
        execute([*command[: _at_file(command)], *serves, *command])


def execute(command: list[str]) -> NoReturn:
    """Replace this process by Python with a command."""
    os.execv(sys.executable, [sys.executable, *command])  # noqa: S606 (no shell is what we want)


def serve(descriptor: int, address: Path, command: list[str]) -> None:
    """Fork a worker for each command; in a fork, become that worker."""
    with socket.socket(fileno=descriptor) as listening:
        try:
            raylet = os.pidfd_open(int(os.environ["RAY_RAYLET_PID"]))
            load_modules()
            is_ready = not (set(_other_threads()) - ENDURE_FORKS)
        except Exception:  # of the modules: Ray tells it, should it come again
            is_ready = False
        if is_ready:
            forks = forked(listening, raylet, command)
            os.close(raylet)
    if not is_ready:
        execute(command)  # the address stays, so that no other process becomes a server
    elif forks is None:
        address.unlink(missing_ok=True)
    else:
        become_worker(forks)


def load_modules() -> None:
    """Import what a worker with a slot imports, and keep the collector off it."""
    import gc  # noqa: PLC0415 (a process that only asks has no use for these)
    import importlib  # noqa: PLC0415

    if not sys.flags.safe_path:  # by PYTHONSAFEPATH, with which no folder of a file is there
        sys.path.pop(0)
    added = [name for name in THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    importlib.import_module("ray._private.workers.default_worker")
    importlib.import_module("slackwater.actors.slot.actor")
    for name in added:
        del os.environ[name]
    gc.collect()
    gc.freeze()


def forked(listening: socket.socket, raylet: int, first: list[str]) -> list[str] | None:
    """Fork for each command; return the command in the fork, None in the server."""
    import select  # noqa: PLC0415 (as above)
    import signal  # noqa: PLC0415

    inputs: list[Any] = [listening, raylet]
    os.setpgid(0, os.getpgid(os.getppid()))  # a raylet ends the group of a worker with it
    if os.fork() == 0:
        os.setpgid(0, 0)
        return first
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system collects forks that end
    while raylet not in (ready := select.select(inputs, [], [], IDLE_S)[0]):
        if not ready and not _has_children():
            break
        if not ready:
            continue
        link, _ = listening.accept()
        with link:
            command, files, _, _ = socket.recv_fds(link, MOST_BYTES, 3)
            if os.fork() == 0:
                os.setpgid(0, 0)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for number, file in enumerate(files):
                    os.dup2(file, number)
                    os.close(file)
                return command.decode().split("\0")
            for file in files:
                os.close(file)
            link.send(b"1")
    return None


def become_worker(command: list[str]) -> None:
    """Run the file of a worker's command as Python would."""
    import runpy  # noqa: PLC0415 (as above)

    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        numpy_random.seed()  # as Python seeds its own in a fork
    sys.argv = command[_at_file(command) :]
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


def _other_threads() -> list[str]:
    tasks = (task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid()))
    return [(task / "comm").read_text().strip() for task in tasks]


def _has_children() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False


def _at_file(command: list[str]) -> int:
    return next(n for n, word in enumerate(command) if word.endswith(".py"))


if __name__ == "__main__":
    main(sys.argv[1:])

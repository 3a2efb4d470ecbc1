"""`python FILE …` as a fork of a process that has imported what most files import, in a second.

shell ──▶ python (a script that connects) ──▶ server ──fork──▶ __main__ is FILE, in the folder,
             ▲   arguments, folder, environment, stdin, stdout and stderr       │ with the files
             └──────────────────────── exit code ◀──────────────────────────────┘ of the shell
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 2**20  # of a command, its environment included
SCRIPT = """#!/bin/sh
exec "{python}" -IS - "$@" 3<&0 <<'END'
import json, os, socket, sys
command = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
    link.connect({address!r})
    socket.send_fds(link, [command], [3, 1, 2])
    os._exit(int(link.recv(16) or 1))
END
"""


@contextmanager
def warm_python(folder: Path) -> Iterator[Path]:
    """Make a folder whose `python` runs a file as a fork; yield it.

    Args:
        folder: where the script lies, and the server's socket.
    """
    address = str(folder / "warm")
    script = folder / "python"
    script.write_text(SCRIPT.format(python=sys.executable, address=address), encoding="utf-8")
    script.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        server = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", __name__, str(listener.fileno())],
            cwd=ROOT,
            pass_fds=[listener.fileno()],
            start_new_session=True,  # so that what it forked ends with it
        )
    try:
        yield folder
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def import_most() -> None:
    """Import what a simulation imports, at once or when it runs."""
    import slackwater as sw  # noqa: PLC0415 - in the server only

    flow = sw.Dataflow("warm")
    rows = flow.source("rows", sw.table({"ts": [1]}), event_time="ts", time_unit="s")
    rows.sink("out", sw.collect_sink())
    sw.Simulation(nodes=1).submit(flow).wait()


def serve(listener: socket.socket) -> int:
    """Fork for each command that comes; return in a child, with its exit code, when it is done."""
    while True:
        link, _ = listener.accept()
        with link:
            command, files, _, _ = socket.recv_fds(link, MOST_BYTES, 3)
            child = os.fork()
            if child == 0:
                for number, file in enumerate(files):
                    os.dup2(file, number)
                break
            for file in files:
                os.close(file)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            link.send(str(code if code >= 0 else 128 - code).encode())
    listener.close()
    arguments, folder, environment = json.loads(command)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return run_file(arguments)


def run_file(arguments: list[str]) -> int:
    """Run a file as `__main__`; return its exit code."""
    path = Path(arguments[0])
    main = ModuleType("__main__")
    main.__file__ = str(path)
    sys.modules["__main__"], sys.argv = main, arguments
    sys.path[0] = str(path.resolve().parent)
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), main.__dict__)  # noqa: S102 - our own
    except Exception as problem:
        trace = problem.__traceback__
        sys.excepthook(type(problem), problem, trace and trace.tb_next)
        return 1
    return 0


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as inherited:
        import_most()
        sys.exit(serve(inherited))

"""Workers of a local node are copies of the first, each with what the raylet gave it.

The program that they run here is not Ray's: it writes down what it finds, and ends.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.waiting import until

FORKS = Path(__file__).resolve().parents[3] / "actors" / "nodes" / "worker_forks.py"
SOON_S = 60.0
PROGRAM = """
import json, os, sys
found = {
    "pid": os.getpid(), "parent": os.getppid(), "group": os.getpgrp(), "folder": os.getcwd(),
    "arguments": sys.argv[1:], "greeting": os.environ.get("GREETING"), "name": __name__,
    "loaded": [name for name in ("ray", "numpy", "pyarrow", "tomllib") if name in sys.modules],
    "threads": os.environ.get("OMP_NUM_THREADS"), "path": sys.path[0],
    "chance": __import__("random").random(), "environment": dict(os.environ),
}
if "numpy" in sys.modules:
    found["drawn"] = sys.modules["numpy"].random.random()
with open(sys.argv[1] + ".part", "w") as file:
    json.dump(found, file)
os.rename(sys.argv[1] + ".part", sys.argv[1])
if sys.argv[1].endswith("first"):
    sys.stdin.read()
"""


@dataclass
class Raylet:
    """Starts workers as a raylet does: each in a group of its own."""

    folder: Path
    first: psutil.Process

    def start(self, name: str, **environ: str) -> tuple[dict[str, Any], int]:
        """Start a worker; return what it found, and who was started to be it."""
        with started(self.folder, name, **environ) as process:
            assert process.wait(SOON_S) == 0
        return found(self.folder / name), process.pid


def started(folder: Path, name: str, **environ: str) -> subprocess.Popen[bytes]:
    modules, program = "--preload=tomllib,no_such_module", str(folder / "program.py")
    own = [str(folder / name), f"--raylet-name={folder / 'raylet'}"]
    return subprocess.Popen(  # noqa: S603 - our own file
        [sys.executable, str(FORKS), modules, program, *own],
        env={"PATH": os.environ["PATH"], **environ},
        cwd=folder,
        process_group=0,
        stdin=subprocess.PIPE,  # the first worker lives until it is closed
    )


def found(path: Path) -> dict[str, Any]:
    until(path.exists, within_s=SOON_S, what="a worker")
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return told


@pytest.fixture(scope="module")
def raylet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Raylet]:
    folder = tmp_path_factory.mktemp("forks")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    with started(folder, "first") as process:
        try:
            found(folder / "first")
            yield Raylet(folder, psutil.Process(process.pid))
        finally:
            process.kill()


def test_the_first_worker_is_a_copy_too_and_keeps_the_group_that_it_was_started_in(
    raylet: Raylet,
) -> None:
    told = found(raylet.folder / "first")
    assert told["parent"] == told["group"] == raylet.first.pid
    until(
        lambda: os.getpgid(raylet.first.pid) == os.getpgrp(), within_s=SOON_S, what="it to leave"
    )  # else it would be killed with what the worker leaves behind


def test_another_is_a_copy_with_all_loaded_and_what_is_its_own(raylet: Raylet) -> None:
    first = found(raylet.folder / "first")
    told, asked = raylet.start("second")
    assert told["parent"] == raylet.first.pid
    assert told["group"] == asked, "the raylet kills that group when the worker has ended"
    assert told["loaded"] == ["ray", "numpy", "pyarrow", "tomllib"]
    assert told["arguments"] == [
        str(raylet.folder / "second"),
        f"--raylet-name={raylet.folder / 'raylet'}",
    ]
    assert (told["name"], told["path"]) == ("__main__", str(raylet.folder))
    assert (told["folder"], told["threads"]) == (first["folder"], None)
    assert (told["chance"], told["drawn"]) != (first["chance"], first["drawn"])
    assert raylet.first.is_running()
    assert raylet.first.num_threads() <= 2, "a copy has none of its threads"
    until(lambda: len(raylet.first.children()) == 1, within_s=SOON_S, what="the copy to end")


def test_who_has_another_environment_loads_by_itself(raylet: Raylet) -> None:
    told, asked = raylet.start("other", GREETING="hello")
    assert (told["pid"], told["greeting"], told["loaded"]) == (asked, "hello", [])
    told, asked = raylet.start("job", RAY_JOB_ID="02000000")  # of another driver
    assert (told["pid"], told["loaded"]) == (asked, [])


def test_who_asks_and_ends_before_it_is_answered_leaves_no_copy(raylet: Raylet) -> None:
    environment = raylet.start("plain", GREETING="hello")[0]["environment"]
    del environment["GREETING"]
    wanted = {
        "arguments": [str(raylet.folder / "program.py"), str(raylet.folder / "nobody")],
        "environment": environment,
        "folder": str(raylet.folder),
        "python": sys.executable,
        "group": 1,  # of another session, so that none may join
    }
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(raylet.folder / "forks"))
        asking.sendall(json.dumps(wanted).encode())
        asking.shutdown(socket.SHUT_WR)
        assert asking.recv(1) == b"", "so that who asked would load by itself"
    until(lambda: len(raylet.first.children()) == 1, within_s=SOON_S, what="the copy to end")
    assert not (raylet.folder / "nobody").exists()
    told, _ = raylet.start("after")
    assert told["parent"] == raylet.first.pid


def test_once_the_first_is_gone_each_loads_by_itself(raylet: Raylet) -> None:
    """Last: the others need it. The first's own worker lives on, and answers nobody."""
    raylet.first.send_signal(signal.SIGKILL)
    until(lambda: raylet.first.status() == psutil.STATUS_ZOMBIE, within_s=SOON_S, what="its end")
    told, asked = raylet.start("late")
    assert (told["pid"], told["loaded"]) == (asked, [])

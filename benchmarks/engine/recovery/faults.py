"""Faults of a job: kills, a lost node, halts of a process, a cut link, a full disk."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

import slackwater as sw
from benchmarks.engine.recovery.flow import ROLES
from benchmarks.frame import NotHereError

LIMIT_S = 6.0
"""Limit of silence of all jobs: the least that the targets allow is over 5 s."""
HALT_S = 5.0
"""Halt after which a process wakes, and its job has not gone back."""
FULL_S = 2.5
"""How long the disk is full: two checkpoints fail."""
DISK_MB = 24
LOOK_S = 0.02
TUNER = "ray::Tuner"


class NoFaultError(Exception):
    """A fault could not come about: what it was to strike is not there."""


@dataclass(frozen=True)
class Scene:
    """A running job, and what a fault needs to know of it.

    Attributes:
        job: the job.
        folder: folder of its checkpoints.
        rng: chance.
        driver: process that submitted the job, if that is not this one.
    """

    job: sw.Job
    folder: Path
    rng: random.Random
    driver: subprocess.Popen[str] | None = None

    def pid(self, role: str) -> int:
        """Return the process of a slot now: source, join or sink."""
        return self.job.workers()[self.job.placement[ROLES[role]]]


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Attributes:
        inject: brings it about.
        times: how often a full run has it.
        goes_back: whether the job goes back to a checkpoint.
        has_deadline: whether the flow has a deadline, and so a tuner.
        is_detached: whether a coordinator runs the job.
        has_driver: whether a process of its own submits the job.
        needs_disk: whether the checkpoints need a disk of their own.
        nodes: nodes that it needs for itself, since it ends some; 0 if it ends none.
        on_hosts: whether it needs hosts with links between them.
    """

    inject: Callable[[Scene], None]
    times: int = 12
    goes_back: bool = True
    has_deadline: bool = False
    is_detached: bool = False
    has_driver: bool = False
    needs_disk: bool = False
    nodes: int = 0
    on_hosts: bool = False


def _kill(role: str) -> Callable[[Scene], None]:
    def inject(scene: Scene) -> None:
        os.kill(scene.pid(role), signal.SIGKILL)

    return inject


def _kill_two(scene: Scene) -> None:
    first, second = scene.rng.sample(sorted(ROLES), 2)
    pids = scene.pid(first), scene.pid(second)
    os.kill(pids[0], signal.SIGKILL)
    time.sleep(scene.rng.uniform(0.0, 0.05))
    os.kill(pids[1], signal.SIGKILL)


def _kill_again(scene: Scene) -> None:
    """Kill another slot while the job goes back."""
    first, second = scene.rng.sample(sorted(ROLES), 2)
    pids = scene.pid(first), scene.pid(second)
    os.kill(pids[0], signal.SIGKILL)
    time.sleep(scene.rng.uniform(0.1, 0.6))
    os.kill(pids[1], signal.SIGKILL)


def _halt(seconds: float) -> Callable[[Scene], None]:
    def inject(scene: Scene) -> None:
        halted = psutil.Process(scene.pid(scene.rng.choice(sorted(ROLES))))
        halted.suspend()
        time.sleep(seconds)
        with suppress(psutil.NoSuchProcess):  # the job has ended it
            halted.resume()

    return inject


def _kill_tuner(scene: Scene) -> None:
    del scene
    lines = _command_lines()
    tuners = [own for own, line in lines.items() if line[0].startswith(TUNER)]
    for tuner in tuners:
        tuner.kill()
    if not tuners:
        raise NoFaultError(f"no tuner among {[line[0] for line in lines.values()]}")


def _kill_coordinator(scene: Scene) -> None:
    where = scene.job.record.coordinator
    if where is None:
        raise NoFaultError("the job has no coordinator")
    os.kill(where.pid, signal.SIGKILL)


def _kill_driver(scene: Scene) -> None:
    if scene.driver is None or scene.driver.poll() is not None:
        raise NoFaultError("the driver has ended before the fault")
    scene.driver.kill()
    scene.driver.wait()


def _kill_node(scene: Scene) -> None:
    """Kill the raylet of the join's node; Ray ends the workers there."""
    node = scene.job.placement[ROLES["join"]]
    name = f"--node-name={node}"
    lines = _command_lines()
    raylets = [own for own, line in lines.items() if line[0].endswith("raylet") and name in line]
    for raylet in raylets:
        raylet.kill()
    if len(raylets) != 1:
        raise NoFaultError(f"{len(raylets)} raylets of {node}")


def _command_lines() -> dict[psutil.Process, list[str]]:
    """Return the command lines of all processes below this one."""
    lines = {}
    for own in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            lines[own] = own.cmdline() or [""]
    return lines


def _cut_link(scene: Scene) -> None:
    """Cut the link between two slots' hosts; mend it once the job has gone back."""
    ask("cut")
    until_s = time.monotonic() + 3 * LIMIT_S
    while not scene.job.metrics.recoveries and time.monotonic() < until_s:
        time.sleep(LOOK_S)
    ask("mend")


def ask(what: str) -> None:
    """Ask the benchmark, which is outside of the hosts, for something that only it can do."""
    print(json.dumps({"ask": what}), flush=True)
    sys.stdin.readline()


def _fill(scene: Scene) -> None:
    filler = scene.folder.parent / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError as problem:
            if problem.errno != errno.ENOSPC:
                raise
    time.sleep(FULL_S)
    filler.unlink()


FAULTS = {
    "source": Fault(_kill("source")),
    "join": Fault(_kill("join")),
    "sink": Fault(_kill("sink")),
    "two": Fault(_kill_two),
    "again": Fault(_kill_again),
    "tuner": Fault(_kill_tuner, goes_back=False, has_deadline=True),
    "coordinator": Fault(_kill_coordinator, is_detached=True),
    "driver": Fault(_kill_driver, goes_back=False, is_detached=True, has_driver=True),
    "halt": Fault(_halt(HALT_S), goes_back=False),
    "silence": Fault(_halt(2 * LIMIT_S), times=5),
    "disk": Fault(_fill, times=5, goes_back=False, needs_disk=True),
    "node": Fault(_kill_node, nodes=4),
    "link": Fault(_cut_link, on_hosts=True),
}
"""{name: fault}."""


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a small disk in memory; yield its folder.

    Raises:
        NotHereError: this process may not mount.
    """
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0700", "tmpfs", str(folder)]
    done = subprocess.run(  # noqa: S603 our own words, no shell
        words, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotHereError(f"a full disk needs a mount, so run as root: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        words = ["umount", "-l", str(folder)]
        subprocess.run(words, capture_output=True, check=False)  # noqa: S603 the same

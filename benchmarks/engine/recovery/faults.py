"""Faults of a job on simulated nodes: kills, a lost node, halts of a process, a full disk."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

import slackwater as sw
from benchmarks.engine.recovery.flow import ROLES
from benchmarks.frame import NotHereError

SILENCE_S = 1.0
"""Limit of silence of all jobs here, but those that a halt must not end."""
HALT_S = 5.0
"""Halt after which a process wakes, and its job has not gone back."""
FULL_S = 2.5
"""How long the disk is full: two checkpoints fail."""
DISK_MB = 24
TUNER = "ray::Tuner"


@dataclass(frozen=True)
class Scene:
    """A running job, and what a fault needs to know of it.

    Attributes:
        job: the job.
        folder: folder of its checkpoints.
        rng: chance.
    """

    job: sw.Job
    folder: Path
    rng: random.Random

    def pid(self, role: str) -> int:
        """Return the process of a slot now: source, join or sink."""
        return self.job.workers()[ROLES[role]]


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Attributes:
        inject: brings it about.
        goes_back: whether the job goes back to a checkpoint.
        has_deadline: whether the flow has a deadline, and so a tuner.
        silence_s: limit of silence of the job.
        needs_disk: whether the checkpoints need a disk of their own.
        nodes: nodes that it needs for itself, since it ends some; 0 if it ends none.
    """

    inject: Callable[[Scene], None]
    goes_back: bool = True
    has_deadline: bool = False
    silence_s: float = 30.0
    needs_disk: bool = False
    nodes: int = 0


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
        try:
            halted.resume()
        except psutil.NoSuchProcess:  # the job has ended it
            return

    return inject


def _kill_tuner(scene: Scene) -> None:
    del scene
    below = psutil.Process().children(recursive=True)
    tuners = [own for own in below if own.cmdline()[:1] == [TUNER] or TUNER in own.name()]
    for tuner in tuners:
        tuner.kill()
    if not tuners:
        raise RuntimeError(f"no tuner among {[own.name() for own in below]}")


def _kill_node(scene: Scene) -> None:
    """Kill the raylet of the join's node; Ray ends the workers there."""
    del scene
    words = {own: own.cmdline() for own in psutil.Process().children(recursive=True)}
    name = f"--node-name={ROLES['join']}"
    raylets = [own for own, line in words.items() if line[0].endswith("raylet") and name in line]
    for raylet in raylets:
        raylet.kill()
    if len(raylets) != 1:
        raise RuntimeError(f"{len(raylets)} raylets of {ROLES['join']}")


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
    "halt": Fault(_halt(HALT_S), goes_back=False),
    "silence": Fault(_halt(2 * SILENCE_S + 1.0), silence_s=SILENCE_S),
    "tuner": Fault(_kill_tuner, goes_back=False, has_deadline=True),
    "node": Fault(_kill_node, nodes=4),
    "disk": Fault(_fill, goes_back=False, needs_disk=True),
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

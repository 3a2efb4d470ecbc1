"""Other processes: drivers and shells beside a local cluster, and what runs below a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

import slackwater as sw
from slackwater.actors.nodes.placement import list_nodes
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
QUICK_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""For JDK_JAVA_OPTIONS: a JVM that lives for seconds does not earn its compiler's and verifier's
work (a session's start and first frame: 24 s of CPU instead of 30)."""
LIMIT_S = 90.0
SOON_S = 20.0


def environment_of(cluster: sw.Cluster) -> dict[str, str]:
    """What a process of its own needs to connect to a local cluster."""
    local = cluster._ray._local
    assert local is not None
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        **local.environment,
        "RAY_ADDRESS": cluster._ray.address,
        "PYTHONPATH": os.pathsep.join(paths),
    }


def driver(cluster: sw.Cluster, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program on a local cluster to its end."""
    return subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", code, *arguments],
        env=environment_of(cluster),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def command_line(
    cluster: sw.Cluster, *arguments: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run `slackwater …` in a process of its own."""
    return subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-m", "slackwater.cli.entry", *arguments],
        env={**environment_of(cluster), **environ},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def wait_for_free_cpus(node: str, count: float) -> None:
    """Wait until Ray tells of so many free CPUs; it hears of actors later than they run."""

    def is_known() -> bool:
        return [one.free_cpus for one in list_nodes() if one.name == node] == [count]

    until(is_known, within_s=SOON_S, what=f"{count:g} free CPUs on {node}")


def below(pid: int | None = None) -> list[psutil.Process]:
    """Return the descendants of a process, of this one unless told."""
    found: list[psutil.Process] = psutil.Process(pid).children(recursive=True)
    return found


def command_lines(processes: Iterable[psutil.Process]) -> dict[psutil.Process, str]:
    """Return {process: its command line} of those that are still there when they are asked."""
    lines = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            lines[process] = " ".join(process.cmdline())
    return lines

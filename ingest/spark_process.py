"""Add what PySpark and RayDP lack: time limits, captured output, ended processes.

Used by the session's owner. The code here relies on their inner workings, which is why their
versions are pinned.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import logging
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any, TypeVar

import ray
import raydp
from pyspark import SparkContext

from slackwater.runtime.errors import ClusterError

T = TypeVar("T")

POLL_S = 0.1
KILLED_S = 5.0
"""How long Ray may keep the names of killed actors."""
UNPACKED_IN = Path("/tmp/ray")  # noqa: S108 - Ray's Java has no other place
MAPPED_S = 5.0
"""Time after which a JVM has mapped a library that it has unpacked."""
_ACTORS = re.compile(r"RAY_APP_MASTER|raydp-executor-\d+|.+_SPARK_MASTER")


def within(limit_s: float, function: Callable[[], T]) -> T:
    """Call a function that may hang, in a separate thread.

    Raises:
        TimeoutError: the function has not returned after `limit_s`; it may still run.
    """
    outcome: list[T] = []
    problems: list[BaseException] = []

    def call() -> None:
        try:
            outcome.append(function())
        except BaseException as problem:  # raised in the caller's thread
            problems.append(problem)

    thread = threading.Thread(target=call, name=f"within-{limit_s:g}s", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # Python 3.12 starts no threads during its shutdown
        call()
    else:
        thread.join(limit_s)
    if problems:
        raise problems[0]
    if not outcome:
        raise TimeoutError
    return outcome[0]


def omit_exit_of_raydp() -> None:
    """Omit RayDP's stop at the end of the process: the session has a stop there.

    RayDP waits without a limit for a lock that a start holds, also a start that hangs.
    """
    atexit.unregister(raydp.stop_spark)


@contextlib.contextmanager
def output_in(path: Path) -> Iterator[None]:
    """Redirect output of the driver's JVM, and of PySpark's bridge to it, into a file.

    The JVM writes there for as long as it lives. The bridge would print the traceback of every
    failing micro-batch, which the source raises anyway.
    """
    module: Any = importlib.import_module("pyspark.context")
    launch = module.launch_gateway
    bridge = logging.getLogger("py4j")
    handler = logging.FileHandler(path)
    with path.open("ab") as log:
        # In a session of its own: a terminal that closes must not end it before its flow.
        own = {"stdout": log, "stderr": log, "start_new_session": True}
        module.launch_gateway = partial(launch, popen_kwargs=own)
        bridge.addHandler(handler)
        bridge.propagate = False
        try:
            yield
        finally:
            module.launch_gateway = launch
            bridge.removeHandler(handler)
            bridge.propagate = True
            handler.close()


def end_actors(*, patience_s: float) -> None:
    """Wait until RayDP's actors have ended; kill the rest after `patience_s`.

    Raises:
        ClusterError: some are still there `KILLED_S` later.
    """
    patience = time.monotonic() + patience_s
    while names := [name for name in ray.util.list_named_actors() if _ACTORS.fullmatch(name)]:
        if time.monotonic() >= patience + KILLED_S:
            raise ClusterError(
                f"Spark's actors {', '.join(names)} were killed, and Ray still has them after "
                f"{KILLED_S:g} s; see `ray list actors`, and whether their node is up"
            )
        if time.monotonic() >= patience:
            for name in names:
                with contextlib.suppress(ValueError):  # ended meanwhile
                    ray.kill(ray.get_actor(name))
        time.sleep(POLL_S)


def end_jvm(*, limit_s: float) -> None:
    """End the driver's JVM: PySpark would keep it, tied to this Ray cluster, for ever."""
    gateway: Any = SparkContext._gateway
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    if gateway is None:
        return
    process: Popen[bytes] = gateway.proc
    with contextlib.suppress(Exception):  # the JVM may have ended before
        within(limit_s, gateway.shutdown)
    if process.stdin is not None:
        process.stdin.close()  # at its end the JVM exits by itself
    try:
        process.wait(limit_s)
    except TimeoutExpired:
        process.kill()
        process.wait()


def remove_unpacked(*, since_s: float) -> None:
    """Remove the folders of Ray's Java library that no process uses any more.

    Args:
        since_s: start of our first JVM, wall clock. Younger folders are ours, or of a parallel
            session, which has its library mapped within `MAPPED_S`.
    """
    used: list[str] = []
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):  # the process has ended, or is another user's
            used.append(maps.read_text(errors="replace"))
    for folder in UNPACKED_IN.glob("[0-9]*"):
        is_used = any(f"{folder}/" in maps for maps in used)
        if not is_used and since_s < _made_s(folder) < time.time() - MAPPED_S:
            shutil.rmtree(folder, ignore_errors=True)


def _made_s(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0

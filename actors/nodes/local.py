"""Simulate Ray nodes on this machine: driver's side of `actors/nodes/local_supervisor.py`.

The nodes are real Ray nodes, but they share one clock and this machine's cores: their CPUs are
accounting only. They listen on 127.0.0.1 alone, and refuse peers without the token, which lives in
a private folder and nowhere else.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from slackwater.actors.nodes.placement import SLOTS
from slackwater.runtime.errors import ClusterError, SettingError

__all__ = ["LocalNodes"]

SUPERVISOR = Path(__file__).with_name("local_supervisor.py")
SPARE_CPUS = 3  # beside the slots, for Spark's executors
LEAST_OBJECT_STORE_MB = 75  # Ray refuses a smaller one
START_LIMIT_S = 120.0  # three nodes take 4 s on an idle machine
STOP_LIMIT_S = 30.0  # of which the supervisor uses 20 at most
# A Unix socket's path has at most 107 characters; Ray appends 71 characters to ours:
# /ray/session_2026-01-31_12-00-00_123456_1234567/sockets/plasma_store.12
LONGEST_FOLDER = 36
# The user's settings for another cluster (address, token, storage) must not reach our nodes.
FOREIGN = (
    "RAY_ADDRESS",
    "RAY_AUTH_TOKEN",
    "RAY_NAMESPACE",
    "RAY_RAYLET_PID",
    "RAY_REDIS_ADDRESS",
    "RAY_TMPDIR",
)


class LocalNodes:
    """Starts `count` Ray nodes, named node-1, node-2, …, and takes them down.

    Args:
        count: nodes, >= 1. The first is the head.
        cores: slots of each, >= 1.
        cpus_per_node: logical CPUs of each, >= cores; cores + `SPARE_CPUS` if None. More than the
            machine has is fine: Ray only counts them. Spark through RayDP needs some besides the
            slots.
        object_store_mb: Ray's object store of each node, in MiB, >= 75.
        progress: called with a description of each step.

    The environment as it is now (such as JAVA_HOME and JDK_JAVA_OPTIONS) reaches the workers.

    Raises:
        SettingError: an argument out of its range.
        ClusterError: not Linux, or the nodes did not start; the message holds Ray's reason.
    """

    def __init__(
        self,
        count: int = 3,
        *,
        cores: int = 1,
        cpus_per_node: int | None = None,
        object_store_mb: int = 100,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        cpus = cores + SPARE_CPUS if cpus_per_node is None else cpus_per_node
        _check(count, cores, cpus, object_store_mb)
        self._folder = _private_folder()
        self._supervisor: subprocess.Popen[str] | None = None
        try:
            self.environment = _with_token(self._folder)  # what a client of these nodes needs
            self._supervisor = self._start_supervisor(
                {
                    "driver_pid": os.getpid(),
                    "folder": str(self._folder),
                    "count": count,
                    "resources": {SLOTS: cores},  # so that each driver sees the same number
                    "cpus_per_node": cpus,
                    "object_store_bytes": object_store_mb * 2**20,
                }
            )
            ready = self._wait_until_ready(progress or (lambda _: None))
        except BaseException:  # Ctrl-C too: no process may remain
            self.close()
            raise
        self.address: str = ready["address"]
        self.ids: dict[str, str] = ready["ids"]  # {node name: Ray node id}

    def close(self) -> None:
        """Take all nodes down; return when every process and the folder are gone. Idempotent."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            _pipe(supervisor.stdin).close()  # asks the supervisor to take everything down
            try:  # a second Ctrl-C here is harmless: the supervisor goes on regardless
                supervisor.wait(timeout=STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                supervisor.kill()  # and the system kills the nodes with it
                supervisor.wait()
                raise ClusterError(
                    f"the local nodes did not end within {STOP_LIMIT_S:.0f} s and were killed; a "
                    "stuck disk can do this: look for raylet processes"
                ) from None
            finally:
                _pipe(supervisor.stdout).close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> LocalNodes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start_supervisor(self, plan: dict[str, Any]) -> subprocess.Popen[str]:
        environment = {k: v for k, v in os.environ.items() if k not in FOREIGN} | self.environment
        # A JVM's temp files (libraries, blocks) are removed with our folder.
        java = f"-XX:-UsePerfData -Djava.io.tmpdir={self._folder}"
        environment["JDK_JAVA_OPTIONS"] = (
            f"{environment.get('JDK_JAVA_OPTIONS', '')} {java}".strip()
        )
        with (self._folder / "supervisor.log").open("w", encoding="utf-8") as log:
            return subprocess.Popen(  # noqa: S603 our own file, no shell
                [sys.executable, "-P", str(SUPERVISOR), "start", json.dumps(plan)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                start_new_session=True,  # Ctrl-C in our terminal is for the driver alone
            )

    def _wait_until_ready(self, progress: Callable[[str], None]) -> dict[str, Any]:
        assert self._supervisor is not None
        limit = threading.Timer(START_LIMIT_S, _pipe(self._supervisor.stdin).close)
        limit.daemon = True
        limit.start()
        reason = f"no answer within {START_LIMIT_S:.0f} s"
        try:
            for line in _pipe(self._supervisor.stdout):
                report: dict[str, Any] = json.loads(line)
                if "address" in report:
                    return report
                if "error" in report:
                    reason = report["error"]
                else:
                    progress(report["step"])
        finally:
            limit.cancel()
        raise ClusterError(
            f"Ray did not start the local nodes: {reason}\n{self._last_words()}"
            "try fewer nodes, or end other Ray processes if memory or /dev/shm is short"
        )

    def _last_words(self) -> str:
        """Return the end of the supervisor's log; empty if the folder is gone."""
        with contextlib.suppress(OSError):
            lines = (self._folder / "supervisor.log").read_text(errors="replace").splitlines()
            return "".join(f"  | {line}\n" for line in lines[-5:])
        return ""


def _check(count: int, cores: int, cpus_per_node: int, object_store_mb: int) -> None:
    if sys.platform != "linux":
        raise ClusterError(
            f"local nodes need Linux, and this is {sys.platform}: its kernel ties their "
            "processes together; run the flow in the simulator, or connect to a cluster"
        )
    for name, value, least in (
        ("count", count, 1),
        ("cores", cores, 1),
        ("cpus_per_node", cpus_per_node, cores),
        ("object_store_mb", object_store_mb, LEAST_OBJECT_STORE_MB),
    ):
        if value < least:
            raise SettingError(f"local nodes: {name}={value}, but it must be at least {least}")


def _private_folder() -> Path:
    """Create a folder for this user alone, with a path short enough for sockets."""
    base = Path(tempfile.gettempdir())
    if len(str(base)) + len("/sw-12345678") > LONGEST_FOLDER:
        base = Path("/tmp")  # noqa: S108 mkdtemp makes a fresh folder there, mode 0700
    try:
        return Path(tempfile.mkdtemp(prefix="sw-", dir=base))
    except OSError as error:
        raise ClusterError(
            f"local nodes need a folder for their sockets, and {base} takes none: {error}; "
            f"set TMPDIR to a writable folder whose path is under {LONGEST_FOLDER - 12} letters"
        ) from error


def _with_token(folder: Path) -> dict[str, str]:
    """Write a fresh token for this user alone; return the environment that uses it."""
    path = folder / "token"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(32))
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(path),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Despite its name: with 0, Ray takes "this host" for 127.0.0.1, not for the address of the
        # network card.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "SPARK_LOCAL_IP": "127.0.0.1",  # Spark on these nodes listens on loopback, too
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray warns about GPUs
    }


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream

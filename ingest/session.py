"""Own the Spark session that runs on RayDP's executors inside the Ray cluster.

    with SparkOnRay("prepare", executors=2) as spark:
        frame = spark.session.read.parquet("fixes/")

Nothing else starts or stops Spark. RayDP allows one session per process, and so do we.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from uuid import uuid4

import ray
import raydp
from pyspark import SparkContext
from pyspark.sql import SparkSession

from slackwater.ingest.frame_input import BLOCK_ROWS
from slackwater.ingest.java import JavaHome, prepare_java
from slackwater.ingest.spark_failure import user_cause
from slackwater.ingest.spark_process import (
    POLL_S,
    end_actors,
    end_jvm,
    omit_exit_of_raydp,
    output_in,
    remove_unpacked,
    within,
)
from slackwater.ingest.temporary import TemporaryFolder
from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import ClusterError, IngestError, SettingError
from slackwater.runtime.model.times import NS_PER_SECOND, Duration, duration_ns
from slackwater.runtime.shown import shown

STOP_LIMIT_S = 20.0
"""How long an orderly stop may take before the rest is killed."""
PINNED = 0.001
"""Amount of the pinning resource that an actor takes: tiny, since it only says where."""
_JVM_OPTIONS = (
    "spark.driver.extraJavaOptions",
    "spark.executor.extraJavaOptions",
    "spark.ray.raydp_app_master.extraJavaOptions",
)

_current: SparkOnRay | None = None
_current_lock = threading.RLock()


class SparkOnRay:
    """Spark on executors that are Ray actors. A context manager; start and stop are idempotent.

    Args:
        app_name: shown in Spark's and Ray's lists.
        executors: number; each is a Ray actor with a JVM and its Python workers.
        cores: cores of each executor; Ray counts them as CPUs taken.
        memory: memory of each executor's JVM, like "1g"; Ray counts it too.
        resource: a custom Ray resource that the executors' nodes must have; None if any node will
            do.
        conf: Spark settings that override ours.
        start_limit: how long the start may take.

    Raises:
        SettingError: a number below one, or memory not of the form "512m" or "2g".
    """

    @checked_call
    def __init__(
        self,
        app_name: str,
        executors: int = 1,
        *,
        cores: int = 1,
        memory: str = "1g",
        resource: str | None = None,
        conf: Mapping[str, str] | None = None,
        start_limit: Duration = "120s",
    ) -> None:
        if executors < 1 or cores < 1:
            raise SettingError(f"executors={executors} and cores={cores} must be at least 1")
        if not re.fullmatch(r"[1-9]\d*[kmgt]b?", memory, re.IGNORECASE):
            raise SettingError(f"memory={shown(memory)} must be a size like '512m' or '2g'")
        self.app_name = app_name
        self.executors = executors
        self.cores = cores
        self.memory = memory
        self.resource = resource
        self._conf = dict(conf or {})
        self._start_limit_s = duration_ns(start_limit, what="start_limit") / NS_PER_SECOND
        self._session: SparkSession | None = None
        self._temporary: TemporaryFolder | None = None
        self._outputs = contextlib.ExitStack()
        self._started_s = 0.0  # wall clock
        self._before_stop: list[Callable[[], None]] = []

    @property
    def session(self) -> SparkSession:
        """The Spark session.

        Raises:
            IngestError: the session is not running.
        """
        if self._session is None:
            raise IngestError(
                f"Spark session {self.app_name!r} is not running; call start(), or use it in a "
                "with statement"
            )
        return self._session

    @property
    def log_path(self) -> Path | None:
        """The log file of Spark's driver; None if it has not started, or stopped cleanly.

        The executors' logs are in the `logs` folder of Ray's session, as for any actor.
        """
        return None if self._temporary is None else self._temporary.path / "spark.log"

    def start(self) -> SparkSession:
        """Start the session, or return the running one, once all executors are there.

        Raises:
            ClusterError: Ray is not initialised here, or has no room for the executors.
            JavaError: no Java.
            IngestError: another session runs in this process, or Spark did not start; names
                the log.
        """
        global _current  # noqa: PLW0603 - RayDP has one session per process, owned here
        with _current_lock:
            if self._session is not None:
                return self._session
            self._check_alone()
            _current = self
            omit_exit_of_raydp()
            atexit.register(self.stop)
            try:
                self._start()
            except BaseException:
                self._stop(keep_log=True)
                raise
            return self.session

    def stop(self) -> None:
        """Stop the session, its executors and its JVM, without a trace. Idempotent."""
        with _current_lock:
            if _current is self:
                self._stop(keep_log=False)

    def before_stop(self, action: Callable[[], None]) -> None:
        """Call an action first when the session stops, such as the end of its streams."""
        self._before_stop.append(action)

    def __enter__(self) -> SparkOnRay:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _check_alone(self) -> None:
        if not ray.is_initialized():
            raise ClusterError(
                f"Spark session {self.app_name!r} runs inside a Ray cluster and this process is in "
                "none; start one, or connect to one, first"
            )
        if _current is not None or SparkContext._gateway is not None:
            other = repr(_current.app_name) if _current is not None else "not started by us"
            raise IngestError(
                f"Spark session {self.app_name!r} cannot start: this process has one already "
                f"({other}), and RayDP allows one; stop that first"
            )

    def _start(self) -> None:
        java, self._started_s = prepare_java(), time.time()
        # Else the executors start the first `python3` of their node.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        self._temporary = TemporaryFolder("slackwater-spark-")
        folder = self._temporary.path
        self._outputs.enter_context(output_in(folder / "spark.log"))
        deadline = time.monotonic() + self._start_limit_s
        try:
            self._session = within(self._start_limit_s, partial(self._launch, java, folder))
        except TimeoutError:
            raise ClusterError(self._unfinished("did not start")) from None
        except Exception as problem:  # any error of the JVM or Ray
            raise IngestError(
                f"Spark session {self.app_name!r} did not start: {user_cause(problem)}\n"
                f"the log is {self.log_path}"
            ) from None
        status = self._session.sparkContext._jsc.sc()
        while status.getExecutorMemoryStatus().size() <= self.executors:  # the driver counts, too
            if time.monotonic() > deadline:
                raise ClusterError(self._unfinished("did not get its executors"))
            time.sleep(POLL_S)

    def _launch(self, java: JavaHome, folder: Path) -> SparkSession:
        return raydp.init_spark(  # type: ignore[no-any-return]
            # The master's actor gets this name; an earlier one may still be ending.
            f"{self.app_name}-{uuid4().hex[:6]}",
            self.executors,
            self.cores,
            self.memory,
            configs=self._settings(java, folder),
        )

    def _settings(self, java: JavaHome, folder: Path) -> dict[str, str]:
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.warehouse.dir": str(folder),  # else in the user's folder
            "spark.sql.session.timeZone": "UTC",
            # Default 200; only a bounded frame's plan adapts it to the rows.
            "spark.sql.shuffle.partitions": str(2 * self.executors * self.cores),
            "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "200",
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(BLOCK_ROWS),
            "spark.sql.pyspark.jvmStacktrace.enabled": "false",
        }
        if self.resource is not None:
            key = f"spark.ray.raydp_spark_executor.actor.resource.{self.resource}"
            settings[key] = str(PINNED)
        settings |= self._conf
        for key in _JVM_OPTIONS:  # for nodes that Ray started without JDK_JAVA_OPTIONS
            settings[key] = " ".join([*java.options(), settings.get(key, "")]).strip()
        # A JVM's temp files are removed with our folder, also after a kill.
        own = f"-XX:-UsePerfData -Djava.io.tmpdir={folder} -Dray.logging.dir={folder}"
        settings[_JVM_OPTIONS[0]] = f"{settings[_JVM_OPTIONS[0]]} {own}".strip()
        return settings

    def _unfinished(self, what: str) -> str:
        total: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        free: dict[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]
        names = ["CPU", "memory", *([self.resource] if self.resource else [])]
        room = ", ".join(
            f"{name} {free.get(name, 0):g} of {total.get(name, 0):g}" for name in names
        )
        pinned = f" on nodes with {self.resource!r}" if self.resource else ""
        executor = {"CPU": float(self.cores), "memory": float(_bytes_of(self.memory))}
        executor |= {self.resource: PINNED} if self.resource else {}
        return (
            f"Spark session {self.app_name!r} {what} within {self._start_limit_s:g} s: it asks for "
            f"{self.executors} × ({self.cores} CPU, {self.memory}){pinned} and the cluster has "
            f"free: {room}; {way_out(free, executor, self._start_limit_s)}. The log is "
            f"{self.log_path}"
        )

    def _stop(self, *, keep_log: bool) -> None:
        global _current  # noqa: PLW0603 - see start
        for action in reversed(self._before_stop):
            action()
        self._before_stop.clear()
        if self._session is None:  # a hanging start holds RayDP's lock until its processes end
            self._attempt(partial(end_actors, patience_s=0))
            end_jvm(limit_s=0)  # it would look for its master for a minute
        self._session = None
        self._attempt(raydp.stop_spark)
        self._attempt(partial(end_actors, patience_s=STOP_LIMIT_S / 2))
        end_jvm(limit_s=STOP_LIMIT_S / 4)
        remove_unpacked(since_s=self._started_s)
        self._outputs.close()
        if self._temporary is not None and keep_log:
            self._temporary.keep()
        elif self._temporary is not None:
            self._temporary.close()
            self._temporary = None
        atexit.unregister(self.stop)
        _current = None

    def _attempt(self, step: Callable[[], None]) -> None:
        # Try each step of a stop, even if an earlier one failed: Ray may be gone.
        if ray.is_initialized():
            with contextlib.suppress(Exception):
                within(STOP_LIMIT_S, step)


def way_out(free: Mapping[str, float], executor: Mapping[str, float], limit_s: float) -> str:
    """Return the remedy for a session that did not start in time.

    Args:
        free: {resource: amount that is free}.
        executor: {resource: amount for one executor}.
        limit_s: limit of the start.
    """
    short = [name for name, wanted in executor.items() if free.get(name, 0) < wanted]
    if short:
        return f"there is too little {' and '.join(short)}: add nodes, or ask for less"
    return (
        "that is room for one more, so it was too slow, or failed: see its log; on a busy machine "
        f"give it longer, cluster.spark(start_limit='{2 * limit_s:g}s')"
    )


def _bytes_of(memory: str) -> int:
    size = memory.lower().removesuffix("b")
    return int(size[:-1]) << 10 * ("kmgt".index(size[-1]) + 1)


def current() -> SparkOnRay | None:
    """Return the running session of this process; None if none runs."""
    return _current

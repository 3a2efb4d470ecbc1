"""Ours, Bytewax and Flink as `recovery-peers` runs them: begun, looked at, killed, waited for.

```
ours     slot of a Ray node ─▶ rows in SQLite        the job makes the slot again
Bytewax  a process ─▶ lines in a file                started again at once, as a supervisor would
Flink    job manager, two task managers ─▶ lines     the job manager goes on in the other
```
"""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.before import ROOT
from benchmarks.engine.live_poll_feed import KEYS
from benchmarks.engine.recovery.flow import TableOutput, rows_of
from benchmarks.engine.running import ONE_SLOT
from benchmarks.flink import JVM, Flink
from benchmarks.frame import check

CHECKPOINT = "1s"
LINE = 32
"""Bytes of a line: number, space, total, end."""
PROGRAM = "benchmarks.engine.recovery.peer_bytewax"
MANAGER = "org.apache.flink.container.entrypoint.StandaloneApplicationClusterEntryPoint"
WORKER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
WORKERS = 2
"""Task managers of Flink: that of the job, and a spare."""
MEMORY = {
    "framework.heap.size": "128m",
    "framework.off-heap.size": "64m",
    "jvm-metaspace.size": "128m",
    "jvm-overhead.max": "64m",
    "jvm-overhead.min": "64m",
    "managed.size": "16m",
    "network.max": "32m",
    "network.min": "32m",
    "task.heap.size": "256m",
    "task.off-heap.size": "0m",
}
"""Sizes of the parts of a task manager's memory; Flink's scripts compute these from one size."""
PROMPT = {
    "heartbeat.interval": "500 ms",
    "heartbeat.timeout": "3 s",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "100",
    "restart-strategy.fixed-delay.delay": "0 s",
}
"""Settings with which Flink notices a lost process sooner, and does not wait."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sight:
    """Rows that a reader sees at a sink.

    Attributes:
        rows: number of rows that it sees.
        next_number: number of the last row, and one.
    """

    rows: int
    next_number: int


class Engine(ABC):
    """A run of the flow.

    Args:
        folder: folder of the run, empty.
        rate: rows of its source, a second.
        rows: rows of the whole feed.
    """

    def __init__(self, folder: Path, *, rate: int, rows: int) -> None:
        self.folder, self.rate, self.rows = folder, rate, rows

    @abstractmethod
    def begin(self) -> None:
        """Start it."""

    def check_alive(self) -> None:  # noqa: B027 - a default
        """Raise if a process has ended by itself."""

    @abstractmethod
    def look(self) -> Sight:
        """Return what a reader sees now."""

    @abstractmethod
    def kill(self) -> None:
        """Kill the process with the state of the totals."""

    @abstractmethod
    def wait(self, within_s: float) -> None:
        """Wait for the end of the flow."""

    @abstractmethod
    def close(self) -> None:
        """End all its processes."""

    @abstractmethod
    def results(self) -> Ints:
        """Return number and total of each row at the sink, a row each."""


class Total:
    """Adds up the values of a key."""

    def __init__(self) -> None:
        self.total = 0

    def on_rows(self, _key: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, int]]:
        """Return the total after each row."""
        results = []
        for row in rows:
            self.total += row["value"]
            results.append({"number": row["number"], "total": self.total})
        return results


class Ours(Engine):
    """A job in one slot, whose sink tells its last ordinal."""

    def __init__(self, cluster: sw.Cluster, folder: Path, *, rate: int, rows: int) -> None:
        super().__init__(folder, rate=rate, rows=rows)
        self._cluster, self._table = cluster, folder / "rows.db"

    def begin(self) -> None:
        """Submit the job."""
        numbers = np.arange(self.rows)
        data = {
            "ts": numbers * (1_000_000_000 // self.rate),
            "number": numbers,
            "key": pa.array([f"k{number % KEYS}" for number in numbers]),
            "value": numbers * 31 % 1_000,
        }
        flow = sw.Dataflow("totals")
        table = sw.table(pa.table(data))
        rows = flow.source("rows", table, event_time="ts", time_unit="ns", speed=1.0)
        totals = rows.key_by("key").process(Total, {"number": "int64", "total": "int64"})
        totals.sink("out", TableOutput(str(self._table)))
        self._job = self._cluster.submit(
            flow,
            placement=ONE_SLOT,
            checkpoint=CHECKPOINT,
            checkpoint_folder=self.folder / "checkpoints",
        )

    def look(self) -> Sight:
        """Return the number of rows in the table."""
        with suppress(sqlite3.OperationalError):
            table = sqlite3.connect(f"file:{self._table}?mode=ro", uri=True)
            try:
                (last,) = table.execute("SELECT ifnull(max(ordinal), -1) FROM rows").fetchone()
                return Sight(last + 1, last + 1)
            finally:
                table.close()
        return Sight(0, 0)

    def kill(self) -> None:
        """Kill the slot."""
        (pid,) = self._job.workers().values()
        os.kill(pid, signal.SIGKILL)

    def wait(self, within_s: float) -> None:
        """Wait for the end of the job, which went back once."""
        report = self._job.wait(timeout=within_s)
        check(report.ledger.is_balanced, f"the ledger does not balance: {report.ledger}")
        check(len(report.recoveries) == 1, f"recoveries: {report.recoveries}")

    def close(self) -> None:
        """Close the job."""
        self._job.close()

    def results(self) -> Ints:
        """Return the rows of the table."""
        texts = [text.strip("()").split(",") for _, text in rows_of(self._table)]
        return np.array(texts, np.int64).reshape(-1, 2)


class Lines(Engine):
    """A flow in processes, into files of lines in the folder `out`."""

    def __init__(self, folder: Path, sink: str, *, rate: int, rows: int) -> None:
        super().__init__(folder, rate=rate, rows=rows)
        self.sink, self.out = sink, folder / "out"
        self.out.mkdir()
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a process, whose output goes to a file."""
        with (self.folder / f"log-{len(self.processes)}").open("wb") as log:
            self.processes.append(
                subprocess.Popen(words, cwd=ROOT, stdout=log, stderr=log)  # noqa: S603 - ours
            )
        return self.processes[-1]

    def look(self) -> Sight:
        """Return the lines that are whole."""
        rows = next_number = 0
        for path in self._visible():
            with suppress(FileNotFoundError, ValueError), path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size // LINE
                if size:
                    file.seek((size - 1) * LINE)
                    next_number = max(next_number, int(file.read(LINE).split()[0]) + 1)
                rows += size
        return Sight(rows, next_number)

    def check_alive(self) -> None:
        """Raise if a process has ended by itself."""
        for process in self.processes:
            if process.poll() is not None:
                self.ended(process, 0.0)
                raise RuntimeError(f"process {process.pid} has ended before its first row")

    def ended(self, process: subprocess.Popen[bytes], within_s: float) -> None:
        """Wait for the end of a process that is to end by itself."""
        code = process.wait(within_s)
        log = (self.folder / f"log-{self.processes.index(process)}").read_text()
        errors = [line for line in log.splitlines() if "Error" in line or "Exception" in line]
        check(code == 0, f"a process ended with {code}: {''.join(errors[:1])[:500]}")

    def close(self) -> None:
        """Kill what is left."""
        for process in self.processes:
            process.kill()
            process.wait()

    def results(self) -> Ints:
        """Return the lines."""
        lines = [
            line.split()
            for path in self._visible()
            for line in path.read_text(encoding="ascii").splitlines()
        ]
        return np.array(lines, np.int64).reshape(-1, 2)

    def _visible(self) -> list[Path]:
        return [path for path in self.out.iterdir() if not path.name.startswith(".")]


class Bytewax(Lines):
    """A process with one worker and a recovery store; see `peer_bytewax`."""

    def __init__(self, python: str, folder: Path, sink: str, *, rate: int, rows: int) -> None:
        super().__init__(folder, sink, rate=rate, rows=rows)
        words = [str(folder), str(rate), str(rows), sink]
        self._words = [python, "-m", PROGRAM, *words]

    def begin(self) -> None:
        """Start the process."""
        self.start(self._words)

    def kill(self) -> None:
        """Kill the process, and start it again."""
        self.processes[-1].kill()
        self.processes[-1].wait()
        self.start(self._words)

    def wait(self, within_s: float) -> None:
        """Wait for the end of the process."""
        self.ended(self.processes[-1], within_s)


class FlinkJob(Lines):
    """A job manager with the program, and two task managers; see `RecoveryPeer.java`."""

    def __init__(
        self, flink: Flink, settings: Mapping[str, str], folder: Path, sink: str, **sizes: int
    ) -> None:
        super().__init__(folder, sink, **sizes)
        self._flink, self._settings = flink, settings

    def begin(self) -> None:
        """Start the three processes."""
        rpc, rest = _free_ports()
        settings = {
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.bind-host": "127.0.0.1",
            "jobmanager.rpc.port": rpc,
            "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1",
            "rest.port": rest,
            "taskmanager.host": "127.0.0.1",
            "taskmanager.bind-host": "127.0.0.1",
            "taskmanager.cpu.cores": 1.0,
            "pekko.startup-timeout": "60 s",
            "pekko.ask.timeout": "60 s",
            **{f"taskmanager.memory.{part}": size for part, size in MEMORY.items()},
            "io.tmp.dirs": self.folder,
            "execution.checkpointing.interval": CHECKPOINT,
            "execution.checkpointing.dir": (self.folder / "checkpoints").as_uri(),
            **self._settings,
        }
        text = "".join(f"{name}: {value}\n" for name, value in settings.items())
        (self.folder / "config.yaml").write_text(text)
        flow = [str(self.folder), str(self.rate), str(self.rows), str(KEYS), self.sink]
        self._start(MANAGER, "--job-classname", "RecoveryPeer", *flow)
        for _ in range(WORKERS):
            self._start(WORKER)

    def _start(self, main: str, *words: str) -> None:
        java, own = self._flink.java, ["-Xmx768m", "-XX:+UseSerialGC"]
        where = ["--configDir", str(self.folder)]
        self.start([str(java), *JVM, *own, "-cp", self._flink.classes, main, *where, *words])

    def kill(self) -> None:
        """Kill the task manager that has the job."""
        os.kill(int((self.folder / "process").read_text()), signal.SIGKILL)

    def wait(self, within_s: float) -> None:
        """Wait for the end of the job manager, which ends with its job."""
        self.ended(self.processes[0], within_s)


def _free_ports() -> tuple[int, int]:
    """Return two ports of the loopback that are free."""
    with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b:
        return a.getsockname()[1], b.getsockname()[1]

"""Flows on the command line, each in a process and a session of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
ENDLESS = """
import slackwater as sw
from tests.support.endless import EndlessInput

flow = sw.Dataflow("endless", deadline="1s")
numbers = flow.source("numbers", EndlessInput(), event_time="ts").merge(name="gate")
numbers.sink("lines", sw.jsonl_sink("{folder}/out.jsonl"))
numbers.sink("folder", sw.parquet_sink("{folder}/out"))
"""


class Driver:
    """A flow on the command line, in a session of its own."""

    def __init__(self, folder: Path, flow: str, *options: str, under: Sequence[str] = ()) -> None:
        self.folder = folder
        self.started: list[psutil.Process] = []
        """All that it had started when it was struck."""
        flow = flow.replace("{folder}", str(folder))
        (folder / "flow.py").write_text(flow, encoding="utf-8")
        command = ["-m", "slackwater.cli.entry", "run", str(folder / "flow.py"), "--nodes", "1"]
        self.process = subprocess.Popen(  # noqa: S603 our own program
            [*under, sys.executable, *command, "--out", str(folder / "run"), *options],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def status(self) -> dict[str, Any] | None:
        """What `status.json` has; None if there is none yet."""
        path = self.folder / "run" / "status.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def has_results(self) -> bool:
        status = self.status
        if status is None:
            return False
        if status["tuning"] is None or not status["tuning"]["gates"][0]["by"]:
            return False  # its tuner is not up yet, and must not be left either
        return min((sink["rows"] for sink in status["sinks"]), default=0) > 0

    def strike(self, number: int) -> None:
        """Send a signal to the session, as a terminal does; note what it had started."""
        self.started = psutil.Process(self.process.pid).children(recursive=True)
        os.killpg(self.process.pid, number)

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

"""A cluster that knows one job, in place of a real one, for tests of the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from slackwater.cli import main
from slackwater.runtime.measure.report import JobReport
from tests.support.reports import city_report

FLOW = '''
class Flow:
    """As much of a Dataflow as the command line looks at."""
    def __init__(self, name):
        self.name, self.steps = name, {}
    def explain(self):
        return f"graph of {self.name}"
'''


@dataclass
class FakeJob:
    """Reports one after the other, then ends as it was told to."""

    reports: list[JobReport]
    ends_with: BaseException | None = None
    stopped: bool = False
    checkpoints: str = "no checkpoints: the job is not real"
    meanwhile: Callable[[], None] = lambda: None  # called as it runs
    _told: int = 0

    @property
    def status(self) -> str:
        return self.report().state

    @property
    def latency(self) -> dict[str, dict[str, float]]:
        return {}

    def report(self) -> JobReport:
        return self.reports[max(self._told - 1, 0)]

    def wait(self, *, on_report: Callable[[JobReport], None] | None = None) -> JobReport:
        for report in self.reports:
            self._told += 1
            if on_report is not None:
                on_report(report)
        self.meanwhile()
        if self.ends_with is not None:
            raise self.ends_with
        return self.reports[-1]

    def stop(self) -> None:
        self.stopped = True


@dataclass
class FakeHost:
    """A cluster that knows one job, and whether it was closed."""

    job: FakeJob
    asked: dict[str, Any] = field(default_factory=dict)
    submitted: list[str] = field(default_factory=list)
    how: dict[str, Any] = field(default_factory=dict)
    closed: bool = False
    meanwhile: Callable[[], None] = lambda: None  # called as it opens
    closes: Callable[[], None] = lambda: None

    def __enter__(self) -> FakeHost:
        return self

    def __exit__(self, *_: object) -> None:
        self.closes()
        self.closed = True

    def submit(self, flow: Any, **how: Any) -> FakeJob:
        self.meanwhile()
        self.how = how
        self.submitted.append(flow.name)
        return self.job


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHost]:
    """Stands in for the cluster; the test runs in an empty folder with a flow file."""
    made = FakeHost(FakeJob([city_report(100, state="running", elapsed_s=1.0), city_report()]))

    def open_host(**asked: Any) -> FakeHost:
        made.asked = asked
        asked["say"]("starting node 1 of 3")
        return made

    monkeypatch.setattr(main, "open_host", open_host)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)
    (tmp_path / "city.py").write_text(FLOW + "flow = Flow('city')\nother = Flow('other')\n")
    yield made
    for module in set(sys.modules) - known:
        if getattr(sys.modules[module], "__file__", None) == str(tmp_path / "city.py"):
            del sys.modules[module]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, list(arguments))


def write(code: str) -> None:
    Path("city.py").write_text(FLOW + code)

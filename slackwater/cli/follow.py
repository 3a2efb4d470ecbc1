"""Follow a job to its end: progress, and files that outlast it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from slackwater.end_signals import END_SIGNALS
from slackwater.report.deadline_picture import draw_deadline
from slackwater.report.picture import draw_latency
from slackwater.report.report_file import (
    DEADLINE_FILE,
    PICTURE_FILE,
    REPORT_FILE,
    STATUS_FILE,
    load_report,
    save_report,
)
from slackwater.report.run_status import beating, save_status
from slackwater.runtime.errors import SinkError, SlackwaterError
from slackwater.runtime.measure.ledger import ledger_of
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.shown import text_of

STATUS_EVERY_S = 1.0


class Job(Protocol):
    """Job of a submitted flow."""

    @property
    def status(self) -> str:
        """State: starting, running, done, stopped or failed."""
        ...

    @property
    def latency(self) -> Mapping[str, Mapping[str, float]]:
        """Latencies of each sink, {sink: {"p50_ms": …}}."""
        ...

    def report(self) -> JobReport:
        """Return the report so far."""
        ...

    def wait(
        self, timeout: float | None = None, on_report: Callable[[JobReport], None] | None = None
    ) -> JobReport:
        """Return the last report once the job has ended."""
        ...

    def stop(self) -> None:
        """End the job now."""
        ...


class Host(Protocol):
    """Host of flows: a cluster, or the simulator."""

    def submit(
        self, flow: Any, *, rates: Any = None, sample: Any = 1_000, admission: Any = None
    ) -> Job:
        """Start a flow."""
        ...


class Followed(NamedTuple):
    """Last report of a job, and the interrupt that ended it, if one did."""

    report: JobReport
    interrupt: KeyboardInterrupt | None = None


@contextmanager
def starting(flow: str, out: Path, *, host: str, draws: bool = True) -> Iterator[None]:
    """Write to `status.json` that a run starts, or why it could not.

    Args:
        flow: name of the flow.
        out: folder of the run.
        host: name of the host: "ray" or "simulator".
        draws: whether a run that is interrupted as it starts leaves a picture, too.
    """
    begun = JobReport(flow, "starting", host, [], 0.0, [], [], [], ledger_of([], []))
    save_status(begun, out)
    try:
        with beating(out):
            yield
    except BaseException as problem:
        is_interrupt = isinstance(problem, KeyboardInterrupt)
        error = "interrupted" if is_interrupt else text_of(problem)
        state = "stopped" if is_interrupt else "failed"
        with suppress(SlackwaterError):  # must not hide the cause
            if load_report(out / STATUS_FILE).state == "starting":
                _keep(replace(begun, state=state, error=error), out, draws=draws and is_interrupt)
                if is_interrupt:
                    problem.add_note(f"(the flow had not begun; its report is {out / REPORT_FILE})")
        raise


def follow(
    job: Job,
    out: Path,
    *,
    show: Callable[[JobReport], None],
    draws: bool = True,
    now_s: Callable[[], float] = time.monotonic,
) -> Followed:
    """Wait for a job and return its last report, also if an interrupt ended it.

    Writes `status.json` to `out` while it runs, then `report.json`; and if it `draws`,
    `latency.png`, and `deadline.png` for a flow with a deadline. All files are written however the
    job ends.

    Raises:
        SlackwaterError: the cause of the job's end.
        KeyboardInterrupt: an interrupt ended the job, and it has no report.
    """
    watched = _Watched(out, show, now_s)
    try:
        with END_SIGNALS.raised():
            last = job.wait(on_report=watched)
    except KeyboardInterrupt as interrupt:
        job.stop()
        report = _last_of(job, watched, state="stopped", error="interrupted")
        if report is None:
            raise
        _keep(report, out, draws=draws)
        interrupt.add_note(f"(what had been done until then is in {out / REPORT_FILE})")
        return Followed(report, interrupt)
    except SlackwaterError as problem:
        try:
            _keep(_last_of(job, watched, state="failed", error=str(problem)), out, draws=draws)
            problem.add_note(f"(what had been done until then is in {out / REPORT_FILE})")
        except SinkError as unwritten:  # must not hide the cause of the job's end
            problem.add_note(f"({unwritten})")
        raise
    last = watched.noted(last)
    _keep(last, out, draws=draws)
    return Followed(last)


class _Watched:
    """Shows each report, and tries to write one a second to `status.json`."""

    def __init__(
        self, out: Path, show: Callable[[JobReport], None], now_s: Callable[[], float]
    ) -> None:
        self._out = out
        self._show = show
        self._now_s = now_s
        self._written_s: float | None = None
        self._note = ""
        self.last: JobReport | None = None

    def __call__(self, report: JobReport) -> None:
        END_SIGNALS.check()
        self.last = report
        self._show(report)
        now_s = self._now_s()
        if self._written_s is None or now_s - self._written_s >= STATUS_EVERY_S:
            self._written_s = now_s
            try:
                save_status(report, self._out)
            except SinkError as unwritten:  # the run goes on, and the next second tries again
                self._note = f"for a while no status: {unwritten}"

    def noted(self, report: JobReport) -> JobReport:
        """Return a report with a note if a status could not be written."""
        return replace(report, notes=[*report.notes, self._note]) if self._note else report


def _last_of(job: Job, watched: _Watched, *, state: str, error: str) -> JobReport | None:
    """Return the job's last report with its end; None if the job has none."""
    try:
        last: JobReport | None = job.report()
    except SlackwaterError:  # the cause of the job's end may also keep it from answering
        last = watched.last
    if last is None:
        return None
    ended = last.state if last.state in ("stopped", "failed", "done") else state
    return watched.noted(replace(last, state=ended, error=last.error or error))


def _keep(report: JobReport | None, out: Path, *, draws: bool) -> None:
    if report is None:
        return
    save_status(report, out)
    save_report(report, out / REPORT_FILE)
    if draws:
        draw_latency(report, out / PICTURE_FILE)
        if report.tuning is not None:
            draw_deadline(report.tuning, out / DEADLINE_FILE, flow=report.flow)

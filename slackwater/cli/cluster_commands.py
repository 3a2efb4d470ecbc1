"""Commands for a cluster: submit, jobs, status JOB, logs, stop, latency.

Each connects, asks and leaves; the jobs run on without it.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.cli.checkpoint_options import (
    CheckpointFolder,
    CheckpointInterval,
    Renamed,
    checkpoints_of,
    way_on,
)
from slackwater.cli.rate_options import AdmissionOption, Rates, Sample, predicted_by
from slackwater.cli.shell import (
    Address,
    AsJson,
    Placement,
    ReportedFailure,
    Target,
    console_of,
    load,
    placed,
    print_json,
    print_report,
    printed_errors,
)
from slackwater.report.latency_table import latency_json, latency_text, render_latency
from slackwater.report.live_view import LiveView
from slackwater.report.render import plain_console, tabulate
from slackwater.report.sanitize import echo
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import format_ns

if TYPE_CHECKING:
    from slackwater.actors.jobs.logs import LogPart
    from slackwater.actors.jobs.records import JobRecord
    from slackwater.cluster import Cluster
    from slackwater.jobs import Job

WATCH_S = 2.0
FOLLOW_S = 1.0

JobName = Annotated[
    str, typer.Argument(metavar="JOB", help="A job's id, the beginning of it, or its flow's name.")
]
Watch = Annotated[bool, typer.Option("--watch", help="Show it again until the job ends.")]


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line; `status` is shared (`slackwater/cli/main.py`)."""
    for command in (submit, jobs, logs, stop, latency):
        app.command()(command)


def submit(  # noqa: PLR0913 - options, each by name
    flow: Target,
    *,
    address: Address = None,
    placement: Placement = None,
    rate: Rates = None,
    sample: Sample = 1_000,
    admission: AdmissionOption = None,
    checkpoint: CheckpointInterval = None,
    checkpoint_folder: CheckpointFolder = None,
    renamed: Renamed = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Until it ends; it goes on if you leave.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start a flow as a job that outlives this command; print its id."""
    where = placed(placement)
    with printed_errors(as_json=as_json):
        wishes = checkpoints_of(checkpoint, checkpoint_folder, renamed)
        loaded = load(flow)
        flow_of_user: Any = loaded.flow  # a Dataflow, of which `Flow` declares only a part
        show = LiveView(console_of(sys.stderr))
        with connected(address, loaded.module) as cluster:
            by = predicted_by(rate, sample, admission)
            job = cluster.submit(flow_of_user, placement=where, detach=True, **by, **wishes)
            if not wait:
                if as_json:
                    known = {"job": job.id, "flow": job.flow, "placement": job.placement}
                    print_json({**known, "checkpoints": job.checkpoints})
                    return
                echo(job.id)
                echo(job.checkpoints, err=True)
                echo(f"it runs: `slackwater status {job.id}` tells how it goes", err=True)
                return
            if not as_json:
                show.say(f"job {job.id}")
                show.say(job.checkpoints)
            last = _waited(job, _nothing if as_json else show.update, show.close)
        if as_json:
            print_json({"job": job.id, **last.to_json()})
        else:
            print_report(last)
        if last.state != "done":
            raise ReportedFailure(last.error or f"job {job.id} {last.state}")


def jobs(*, address: Address = None, as_json: AsJson = False) -> None:
    """List the jobs of a cluster, ended ones too, the newest first."""
    with printed_errors(as_json=as_json), connected(address) as cluster:
        records = [job.record for job in cluster.jobs()]
        if as_json:
            print_json({"jobs": [record.to_json() for record in records]})
        elif records:
            show_jobs(records, now_ns=time.time_ns())
        else:
            echo("no jobs; start one with `slackwater submit FLOW.py`", err=True)


def show_status(name: str, address: str | None, *, watch_it: bool, as_json: bool) -> None:
    """Show one job of a cluster, with its nodes and its report so far."""
    with printed_errors(as_json=as_json), _job(name, address) as job:
        for last in _reports(job, watch_it=watch_it):
            record = job.record
            if as_json:
                plain = None if last is None else last.to_json()
                print_json({"job": record.to_json(), "report": plain})
                continue
            show_jobs([record], now_ns=time.time_ns())
            if last is not None:
                echo("")
                print_report(last)
        _say_if_lost(job)


def logs(
    job: JobName,
    *,
    address: Address = None,
    tail: Annotated[
        int | None, typer.Option(min=0, help="Only the last lines of each process.")
    ] = None,
    stage: Annotated[str | None, typer.Option(help="Only the process of this stage.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Until the job ends.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the output of a job's processes, also after its end."""
    with printed_errors(as_json=as_json), _job(job, address) as followed:
        parts = followed.logs(stage=stage, tail=tail)
        _show_logs(parts, as_json=as_json)
        while follow and followed.status in ("starting", "running"):
            with suppress(TimeoutError, SlackwaterError):
                followed.wait(timeout=FOLLOW_S)
            parts = followed.logs(stage=stage, seen=parts)
            _show_logs(parts, as_json=as_json)


def stop(job: JobName, *, address: Address = None, as_json: AsJson = False) -> None:
    """Stop a job; its sinks keep their whole batches."""
    with printed_errors(as_json=as_json), _job(job, address) as stopped:
        was = stopped.status
        stopped.stop()
        state = stopped.status
        if as_json:
            print_json({"job": stopped.id, "was": was, "state": state})
        elif was in ("starting", "running"):
            echo(f"job {stopped.id}: {state}")
            _say_way_on(stopped)
        else:
            echo(f"job {stopped.id} had ended before: {state}")
        _say_if_lost(stopped)


def latency(
    job: JobName, *, address: Address = None, watch: Watch = False, as_json: AsJson = False
) -> None:
    """Show a job's latency, its parts, and the errors of its clocks."""
    with printed_errors(as_json=as_json), _job(job, address) as watched:
        for last in _reports(watched, watch_it=watch):
            if last is None:
                raise SlackwaterError(
                    f"job {watched.id} is {watched.status} and left no report; submit it again"
                )
            if as_json:
                print_json({"job": watched.id, **latency_json(last)})
            elif sys.stdout.isatty():
                render_latency(last, console_of(sys.stdout))
            else:
                echo(latency_text(last), nl=False)
        _say_if_lost(watched)


def explained(
    flow: Any, module: ModuleType, address: str, placement: Mapping[str, str], **by: Any
) -> tuple[str, dict[str, str]]:
    """Return a flow's graph and placement on a cluster as text, and {stage: slot}.

    `by` are the arguments of a prediction; empty without one.
    """
    with connected(address, module) as cluster:
        text, plan = cluster.explained(flow, placement=placement, **by)
        return text, dict(plan.slots)


@contextmanager
def connected(address: str | None, module: ModuleType | None = None) -> Iterator[Cluster]:
    """Open a cluster; functions of `module`, the user's file, are pickled by value."""
    from ray import cloudpickle  # noqa: PLC0415 (slow to import)

    from slackwater.cluster import Cluster  # noqa: PLC0415 (brings in Ray)

    if module is not None:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    with Cluster.connect(address) as cluster:
        yield cluster


def show_jobs(records: list[JobRecord], *, now_ns: int) -> None:
    """Print jobs as a table."""
    columns = [
        ("job", [record.id for record in records]),
        ("flow", [record.flow for record in records]),
        ("state", [record.state for record in records]),
        ("submitted by", [record.submitter for record in records]),
        ("at", [_clock_time(record.submitted_ns) for record in records]),
        ("ran", [_duration(record, now_ns) for record in records]),
        ("nodes", [", ".join(record.nodes) for record in records]),
    ]
    console = console_of(sys.stdout)
    if console.is_terminal:
        tabulate(console, "Jobs", columns)
    else:
        written = io.StringIO()
        tabulate(plain_console(written), "Jobs", columns)
        echo("\n".join(line.rstrip() for line in written.getvalue().splitlines()))
    for record in records:
        if record.error and len(records) > 1:
            echo(f"{record.id}: {record.error.splitlines()[0]}")


@contextmanager
def _job(name: str, address: str | None) -> Iterator[Job]:
    with connected(address) as cluster:
        yield cluster.job(name)


def _waited(
    job: Job, on_report: Callable[[JobReport], None], close: Callable[[], None]
) -> JobReport:
    """Return the last report, of a failed job too. Ctrl-C leaves the job running."""
    try:
        return job.wait(on_report=on_report)
    except KeyboardInterrupt:
        close()
        echo(f"job {job.id} goes on; `slackwater stop {job.id}` ends it", err=True)
        raise
    except SlackwaterError as problem:
        if job.status not in ("failed", "lost"):
            raise
        try:
            return job.report()
        except SlackwaterError:  # without a report only the cause is known
            raise problem from None
    finally:
        close()


def _reports(job: Job, *, watch_it: bool) -> Iterator[JobReport | None]:
    """Yield the job's report, None if it has none; repeatedly if watched."""
    while True:
        ends = job.status not in ("starting", "running")
        try:
            yield job.report()
        except SlackwaterError:
            if not ends:
                raise
            yield None
        if ends or not watch_it:
            return
        with suppress(TimeoutError, SlackwaterError):
            job.wait(timeout=WATCH_S)


def _say_if_lost(job: Job) -> None:
    record = job.record
    if record.state == "lost":
        raise ReportedFailure(record.error or f"job {job.id} is lost")


def _say_way_on(job: Job) -> None:
    with suppress(SlackwaterError):  # without a report nothing is known of checkpoints
        if (text := way_on(job.report(), "submit")) is not None:
            echo(text, err=True)


def _show_logs(parts: list[LogPart], *, as_json: bool) -> None:
    if as_json:
        print_json({"logs": [vars(part) for part in parts]})
        return
    for part in parts:
        who = part.who if part.who == part.node else f"{part.who} on {part.node}"
        for line in part.lines:
            echo(f"{who} {part.stream} | {line}")
        if part.problem is not None:
            echo(f"slackwater: no log of {who}: {part.problem}", err=True)


def _clock_time(at_ns: int) -> str:
    try:
        return datetime.fromtimestamp(at_ns / 1e9).astimezone().strftime("%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # outside the years of a calendar
        return "–"


def _duration(record: JobRecord, now_ns: int) -> str:
    if record.started_ns is None:
        return "–"
    end_ns = record.ended_ns or (record.updated_ns if record.has_ended else now_ns)
    return format_ns(max(0, end_ns - record.started_ns))


def _nothing(_: object) -> None:
    """Show nothing."""

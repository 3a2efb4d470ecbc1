"""Command line: run, explain, status, report, version.

Commands for a cluster's jobs are in `slackwater/cli/cluster_commands.py`, parts of all commands in
`slackwater/cli/shell.py`.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from slackwater.cli import cluster_commands
from slackwater.cli.checkpoint_options import (
    CheckpointFolder,
    CheckpointInterval,
    Renamed,
    checkpoints_of,
    way_on,
)
from slackwater.cli.doctor_command import doctor
from slackwater.cli.follow import Host, follow, starting
from slackwater.cli.plan_command import plan, provision
from slackwater.cli.rate_options import AdmissionOption, History, Rates, Sample, predicted_by
from slackwater.cli.shell import (
    Address,
    AsJson,
    Placement,
    ReportedFailure,
    Target,
    app,
    console_of,
    load,
    placed,
    print_json,
    print_report,
    printed_errors,
)
from slackwater.cli.streams import call_with_streams
from slackwater.cli.timesync_command import timesync
from slackwater.end_signals import END_SIGNALS
from slackwater.ingest.java import find_java
from slackwater.report.live_view import LiveView
from slackwater.report.run_folders import RUNS, new_run_folder
from slackwater.report.run_status import find_report, find_status
from slackwater.report.sanitize import echo
from slackwater.runtime.errors import JavaError
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.plan.after_failure import guarantee_lines, guarantees
from slackwater.runtime.plan.by_default import default_line

STALE_S = 15.0
"""Silence after which a status gets a note: a run touches it every few seconds."""

cluster_commands.add_to(app)
app.command()(plan)
app.command()(provision)
app.command()(doctor)
app.add_typer(timesync, name="timesync")


def main() -> None:
    """Run the command line; `slackwater/cli/entry.py` calls it."""
    with END_SIGNALS.command():
        call_with_streams(app)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        echo(f"slackwater {versions()['slackwater']}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print it, and exit."
        ),
    ] = False,
) -> None:
    """Dataflows over late, disordered event streams, inside a latency deadline."""


@app.command()
def run(  # noqa: PLR0913 - options, each by name
    flow: Target,
    *,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Nodes to start or simulate; 3 unless told.")
    ] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Slots of each of these nodes; 1 unless told.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="An existing Ray cluster: host:port, or auto.")
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="In virtual time, here.")] = False,
    rate: Rates = None,
    sample: Sample = 1_000,
    admission: AdmissionOption = None,
    checkpoint: CheckpointInterval = None,
    checkpoint_folder: CheckpointFolder = None,
    renamed: Renamed = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for report.json, latency.png and status.json.")
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress, report or picture; errors still show.")
    ] = False,
) -> None:
    """Run a flow to its end, and report."""
    if address is not None and (nodes is not None or cores is not None or simulate):
        raise typer.BadParameter("--address goes with none of --nodes, --cores and --simulate")
    if simulate and (checkpoint or checkpoint_folder or renamed):
        raise typer.BadParameter(
            "--checkpoint goes without --simulate: only jobs on Ray take checkpoints; try it with "
            "local nodes, as without --simulate"
        )
    with printed_errors(as_json=as_json):
        wishes = checkpoints_of(checkpoint, checkpoint_folder, renamed)
        loaded, module = load(flow)
        folder = out if out is not None else new_run_folder(loaded.name)
        show = LiveView(console_of(sys.stderr))
        talk = not (quiet or as_json)
        opens = partial(
            open_host,
            nodes=nodes or 3,
            cores=cores or 1,
            address=address,
            simulate=simulate,
            module=module,
            say=show.say if talk else _nothing,
        )
        begun = starting(
            loaded.name, folder, host="simulator" if simulate else "ray", draws=not quiet
        )
        # A signal that comes once the job ends lets its files be written, and its nodes close.
        with END_SIGNALS.noted():
            try:
                with begun, ExitStack() as until_end:
                    with END_SIGNALS.raised():
                        opened = until_end.enter_context(opens())
                        by = predicted_by(rate, sample, admission)
                        start: Any = opened.submit  # a cluster takes checkpoints, too
                        job = start(loaded, **by, **wishes)
                        if talk and not simulate:
                            show.say(job.checkpoints)
                    draw = show.update if talk else _nothing
                    last, interrupt = follow(job, folder, show=draw, draws=not quiet)
            finally:
                show.close()
            if as_json:
                print_json({**last.to_json(), "out": str(folder)})
            elif not quiet:
                print_report(last)
                more = ", latency.png and deadline.png" if last.tuning else " and latency.png"
                echo(f"\nreport.json{more} are in {folder}")
            if interrupt is not None:
                if (text := way_on(last, "run")) is not None:
                    interrupt.add_note(f"({text})")
                raise interrupt
            _judge(last, folder)


@app.command()
def explain(  # noqa: PLR0913 - each by name
    flow: Target,
    *,
    address: Address = None,
    placement: Placement = None,
    rate: Rates = None,
    sample: Sample = 1_000,
    history: History = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            min=1, help="Nodes of the prediction, with --rate or --history; 3 by default."
        ),
    ] = None,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="What holds after a failure, in such a job.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print what a flow consists of, without running it.

    With --address, also where it will run; with --rate or --history, what its latency will be, the
    bottleneck, and what would relieve it; with --checkpoints, what sources and sinks guarantee
    after a failure.
    """
    where = placed(placement)
    is_predicted = bool(rate) or history is not None
    if where and address is None and not is_predicted:
        raise typer.BadParameter("--placement needs --address: which cluster's nodes?")
    if nodes is not None and (address is not None or not is_predicted):
        raise typer.BadParameter("--nodes goes with --rate or --history, and without --address")
    with printed_errors(as_json=as_json):
        loaded, module = load(flow)
        slots: dict[str, str] | None = None
        text = loaded.explain()
        by = predicted_by(rate, sample, history=history)
        if address is not None:
            text, slots = cluster_commands.explained(loaded, module, address, where, **by)
        elif is_predicted:
            from slackwater.simulation import Simulation  # noqa: PLC0415 (slow to import)

            flow_of_user: Any = loaded  # a Dataflow, of which `Flow` declares only a part
            text = Simulation(nodes or 3).explain(flow_of_user, placement=where, **by)
        if checkpoints:
            user_flow: Any = loaded  # as above
            default = default_line(loaded.steps, deadline_ns=user_flow.deadline_ns)
            text = "\n".join([text, "", *guarantee_lines(loaded.steps), "", default])
        if not as_json:
            echo(text)
            return
        steps = [
            {
                "name": name,
                "kind": step.traits.kind,
                "inputs": list(step.inputs),
                "columns": {field.name: str(field.type) for field in step.schema},
            }
            for name, step in loaded.steps.items()
        ]
        more: dict[str, Any] = {} if slots is None else {"placement": slots}
        if checkpoints:
            more["after_failure"] = [known.to_json() for known in guarantees(loaded.steps)]
        print_json({"flow": loaded.name, "steps": steps, "text": text, **more})


@app.command()
def status(
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="A job of a cluster: id or flow.")
    ] = None,
    *,
    address: Address = None,
    out: Annotated[Path, typer.Option(help="A run's folder, or one of runs: its newest.")] = RUNS,
    watch_it: Annotated[
        bool, typer.Option("--watch", help="Until the job ends. Only of a cluster's JOB.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the progress of a cluster's JOB, or of a `slackwater run`, from any shell."""
    if job is not None:
        cluster_commands.show_status(job, address, watch_it=watch_it, as_json=as_json)
        return
    if address is not None or watch_it:
        raise typer.BadParameter("--address and --watch need a JOB; `slackwater jobs` lists them")
    with printed_errors(as_json=as_json):
        now = find_status(out)
        age_s = now.age_s
        if as_json:
            folder = str(now.path.parent)
            print_json({**now.report.to_json(), "out": folder, "age_s": round(age_s, 1)})
            return
        print_report(now.report)
        echo(f"\n{now.path}, touched {age_s:.0f} s ago")
        if not now.has_ended and now.report.host == "simulator":
            echo("a simulated run writes its counts at its end")
        if not now.has_ended and age_s > STALE_S:
            echo("a running job writes it every second: its process stands still")


@app.command()
def report(
    place: Annotated[
        Path, typer.Argument(metavar="[DIR|FILE]", help="A run's folder or report.json.")
    ] = RUNS,
    *,
    as_json: AsJson = False,
) -> None:
    """Show the report of an ended or lost run, by default of the newest."""
    with printed_errors(as_json=as_json):
        loaded = find_report(place).report
        if as_json:
            print_json(loaded.to_json())
        else:
            print_report(loaded)


@app.command()
def version(*, as_json: AsJson = False) -> None:
    """Show the versions of Slackwater, Ray, Spark, Python and Java."""
    known = versions()
    if as_json:
        print_json(known)
    else:
        for what, number in known.items():
            echo(f"{what:<11}{number}")


def open_host(
    *,
    nodes: int,
    cores: int,
    address: str | None,
    simulate: bool,
    module: ModuleType,
    say: Callable[[str], None],
) -> AbstractContextManager[Host]:
    """Return the host of a flow, not entered yet.

    The functions of `module`, the user's file, are pickled by value: other nodes need no copy of
    the file.
    """
    from ray import cloudpickle  # noqa: PLC0415 (slow to import)

    from slackwater.cluster import Cluster  # noqa: PLC0415 (brings in Ray)
    from slackwater.simulation import Simulation  # noqa: PLC0415

    host: AbstractContextManager[Host]
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    if simulate:  # the simulator checks that all parts pickle, as on a cluster
        host = Simulation(nodes, cores=cores)
    elif address is not None:
        host = Cluster.connect(address, progress=say)
        host.detaches = False  # the job of `run` ends with the command
    else:
        host = Cluster.local(nodes, cores=cores, progress=say)
    return host


def _judge(last: JobReport, folder: Path) -> None:
    """Raise if a printed report is that of a failure."""
    if last.state in ("failed", "stopped"):
        raise ReportedFailure(last.error or f"flow {last.flow!r} {last.state}")
    problems = imbalances(last)
    if problems:
        raise ReportedFailure(
            f"the ledger of flow {last.flow!r} does not balance: {'; '.join(problems)}. "
            f"Do not trust these results; this is a bug of ours, please send {folder}/report.json"
        )


def _nothing(_: object) -> None:
    """Show nothing."""


if __name__ == "__main__":
    main()


def versions() -> dict[str, str]:
    """Return {program: version}; "not found" for a missing one."""
    return {
        "slackwater": _installed("slackwater"),
        "ray": _installed("ray"),
        "spark": _installed("pyspark"),
        "raydp": _installed("raydp"),
        "python": platform.python_version(),
        "java": _java(),
    }


def _installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not found"


def _java() -> str:
    try:
        java = find_java(os.environ)
    except JavaError:
        return "not found"
    return f"{java.release} ({java.path})"

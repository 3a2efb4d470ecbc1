"""The command line: run, explain, status, report, version.

Results go to stdout (with --json: one JSON object and nothing else), all else to stderr.
Exit codes: 0 done, 1 an error of the flow, the input or the run, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from rich.console import Console

from runtime.errors import SettingError, SlackwaterError
from runtime.measure import JobReport, imbalances
from slackwater.picture import sparkline
from slackwater.progress import Progress
from slackwater.render import plain_console, render_report, report_text
from slackwater.report_file import REPORT_FILE, STATUS_FILE, find_file, json_text, load_report
from slackwater.userfile import Loaded, load_flow, split_target
from slackwater.versions import versions
from slackwater.watch import Host, watch

RUNS = Path("out")
STALE_S = 15.0
"""A running job writes its status every second; silence this long is worth a word."""

app = typer.Typer(
    name="slackwater",
    help="Dataflows over late, disordered event streams, inside a latency deadline.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

_Target = Annotated[
    str, typer.Argument(metavar="FLOW.py[:name]", help="The file, and which flow in it.")
]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without µ is no reason to die
    app()


@app.command()
def run(
    flow: _Target,
    *,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Nodes to start or simulate; 3 unless told.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="An existing Ray cluster: host:port, or auto.")
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="In virtual time, here.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for report.json, latency.png and status.json.")
    ] = None,
    as_json: _Json = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress and no report; errors still show.")
    ] = False,
) -> None:
    """Run a flow to its end, and report."""
    if address is not None and (nodes is not None or simulate):
        raise typer.BadParameter("--address goes with neither --nodes nor --simulate")
    with _errors_told(as_json=as_json):
        found, module = _load(flow)
        folder = out if out is not None else _new_folder(found.name)
        show = Progress(_console(sys.stderr))
        talk = not (quiet or as_json)
        try:
            host = open_host(
                nodes=nodes or 3,
                address=address,
                simulate=simulate,
                module=module,
                say=show.say if talk else _nothing,
            )
            with host as opened:
                job = opened.submit(found)
                last = watch(job, folder, show=show.update if talk else _nothing)
        finally:
            show.close()
        if as_json:
            _print_json({**last.to_json(), "out": str(folder)})
        elif not quiet:
            _print_report(last)
            typer.echo(f"\nreport.json and latency.png are in {folder}")
        _judge(last, folder)


@app.command()
def explain(flow: _Target, *, as_json: _Json = False) -> None:
    """Print what a flow consists of, without running it."""
    with _errors_told(as_json=as_json):
        found, _ = _load(flow)
        text = found.explain()
        if not as_json:
            typer.echo(text)
            return
        steps = [
            {
                "name": name,
                "kind": type(step).__name__.removesuffix("Step").lower(),
                "inputs": list(step.inputs),
                "columns": {field.name: str(field.type) for field in step.schema},
            }
            for name, step in found.steps.items()
        ]
        _print_json({"flow": found.name, "steps": steps, "text": text})


@app.command()
def status(
    *,
    out: Annotated[Path, typer.Option(help="A run's folder, or one of runs: its newest.")] = RUNS,
    as_json: _Json = False,
) -> None:
    """Show how a run is going, from any shell."""
    with _errors_told(as_json=as_json):
        path = find_file(out, STATUS_FILE)
        found = load_report(path)
        age_s = max(0.0, time.time() - path.stat().st_mtime)
        ended = found.state in ("done", "stopped", "failed")
        if as_json:
            _print_json({**found.to_json(), "out": str(path.parent), "age_s": round(age_s, 1)})
            return
        _print_report(found)
        typer.echo(f"\n{path}, written {age_s:.0f} s ago")
        if not ended and age_s > STALE_S:
            typer.echo("a running job writes it every second: this one has probably died")


@app.command()
def report(
    place: Annotated[
        Path, typer.Argument(metavar="[DIR|FILE]", help="A run's folder or report.json.")
    ] = RUNS,
    *,
    as_json: _Json = False,
) -> None:
    """Show the report of a run that has ended; of the newest unless told."""
    with _errors_told(as_json=as_json):
        found = load_report(find_file(place, REPORT_FILE))
        if as_json:
            _print_json(found.to_json())
        else:
            _print_report(found)


@app.command()
def version(*, as_json: _Json = False) -> None:
    """Show our version, and those of Ray, Spark, Python and Java."""
    found = versions()
    if as_json:
        _print_json(found)
    else:
        for what, number in found.items():
            typer.echo(f"{what:<11}{number}")


def open_host(
    *,
    nodes: int,
    address: str | None,
    simulate: bool,
    module: ModuleType,
    say: Callable[[str], None],
) -> AbstractContextManager[Host]:
    """Return where the flow is to run, not entered yet.

    The functions of `module`, the user's file, then travel as they are: other nodes need no
    copy of the file.
    """
    from ray import cloudpickle  # noqa: PLC0415 (slow to import)

    from slackwater.cluster import Cluster, Simulation  # noqa: PLC0415 (brings in Ray)

    host: AbstractContextManager[Host]
    if simulate:
        host = Simulation(nodes)
    else:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        if address is not None:
            host = Cluster.connect(address, progress=say)
        else:
            host = Cluster.local(nodes, progress=say)
    return host


@contextmanager
def _errors_told(*, as_json: bool) -> Iterator[None]:
    """Tell our own errors in one paragraph, without a traceback of ours."""
    try:
        yield
    except SlackwaterError as problem:
        notes = getattr(problem, "__notes__", [])
        message = "\n".join([str(problem), *notes])
        typer.echo(f"slackwater: {message}", err=True)
        if as_json and not isinstance(problem, _Told):
            _print_json({"error": {"kind": type(problem).__name__, "message": message}})
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("slackwater: interrupted", err=True)
        raise typer.Exit(130) from None


class _Told(SlackwaterError):
    """The report is on stdout already and says it, too."""


def _judge(last: JobReport, folder: Path) -> None:
    """Raise where a report that has been printed tells of a failure."""
    if last.state in ("failed", "stopped"):
        raise _Told(last.error or f"flow {last.flow!r} {last.state}")
    problems = imbalances(last)
    if problems:
        raise _Told(
            f"the ledger of flow {last.flow!r} does not balance: {'; '.join(problems)}. "
            f"Do not trust these results; this is a bug of ours, please send {folder}/report.json"
        )


def _load(target: str) -> Loaded:
    path, name = split_target(target)
    if not path.is_file():
        raise typer.BadParameter(f"there is no file {str(path)!r}", param_hint="FLOW.py[:name]")
    return load_flow(path, name)


def _new_folder(flow: str) -> Path:
    """Return a folder that no run has used: out/<flow>-<local time>."""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in flow)
    name = f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in range(1, 1_000):
        folder = RUNS / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as problem:
            raise SettingError(
                f"{folder} cannot be made: {problem.strerror}; choose a place with --out"
            ) from problem
        return folder
    raise SettingError(f"{RUNS} has too many runs of this second; choose a folder with --out")


def _console(stream: Any) -> Console:
    return Console(file=stream) if stream.isatty() else plain_console(stream)


def _print_report(found: JobReport) -> None:
    console = _console(sys.stdout)
    if console.is_terminal:
        render_report(found, console)
    else:
        typer.echo(report_text(found), nl=False)
    for sink in found.sinks:
        typer.echo(f"{sink.name}: {sparkline(sink.series, width=40)}")


def _print_json(plain: dict[str, Any]) -> None:
    typer.echo(json_text(plain))


def _nothing(_: object) -> None:
    """Show nothing."""


if __name__ == "__main__":
    main()

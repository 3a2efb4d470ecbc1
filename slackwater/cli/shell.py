"""Parts that all commands share: the app, its options, error messages and printing.

Results go to stdout (with --json: only one JSON object), other text to stderr.
Exit codes: 0 done, 1 an error of the flow, the input or the run, 2 wrong usage, 130 Ctrl-C,
143 SIGTERM, 129 SIGHUP.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from contextvars import ContextVar
from functools import partial
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console

from slackwater.cli.userfile import Loaded, load_flow, split_target
from slackwater.end_signals import END_SIGNALS
from slackwater.report.picture import sparkline
from slackwater.report.render import plain_console, render_report, report_text
from slackwater.report.sanitize import echo, sanitized_json
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.interrupts import Terminated
from slackwater.runtime.json_form import json_text
from slackwater.runtime.measure.report import JobReport

app = typer.Typer(
    name="slackwater",
    help="Dataflows over late, disordered event streams, inside a latency deadline.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Target = Annotated[
    str, typer.Argument(metavar="FLOW.py[:name]", help="The file, and which flow in it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
Address = Annotated[
    str | None,
    typer.Option(
        help="A Ray cluster: host:port, ray://host:port, or auto. RAY_ADDRESS, else auto.",
        show_default=False,
    ),
]
Placement = Annotated[
    list[str] | None,
    typer.Option(
        "--placement", metavar="STAGE=SLOT", help="Where a stage runs: slot or node; *=SLOT: all."
    ),
]


class _Json:
    """Stream for JSON, which gets one object.

    Args:
        stream: stream of the command.
        is_wanted: whether the user asked for JSON.
    """

    def __init__(self, stream: TextIO, *, is_wanted: bool) -> None:
        self._stream, self._is_open = stream, is_wanted

    def print(self, plain: dict[str, Any]) -> None:
        self._is_open = False
        typer.echo(sanitized_json(json_text(plain)), file=self._stream)

    def print_error(self, kind: str, message: str) -> None:
        """Print an error, unless an object was printed."""
        if self._is_open:
            self.print({"error": {"kind": kind, "message": message}})
            self._stream.flush()


_json: ContextVar[_Json | None] = ContextVar("_json", default=None)
"""Of the command that runs; None if none exists."""


@contextmanager
def printed_errors(*, as_json: bool) -> Iterator[None]:
    """Print our own errors in one paragraph, without our traceback.

    With JSON, other output meanwhile, as that of the user's file, goes to stderr.
    """
    out = _Json(sys.stdout, is_wanted=as_json)
    own = _json.set(out)
    END_SIGNALS.last_words = partial(out.print_error, "Interrupted", "ended at once by a signal")
    try:
        with redirect_stdout(sys.stderr) if as_json else nullcontext(), END_SIGNALS.raised():
            yield
    except SlackwaterError as problem:
        message = _joined_notes(str(problem), problem)
        if not isinstance(problem, ReportedFailure):
            out.print_error(type(problem).__name__, message)
        raise typer.Exit(1) from None
    except KeyboardInterrupt as interrupt:
        out.print_error("Interrupted", _joined_notes("interrupted", interrupt))
        code = interrupt.status if isinstance(interrupt, Terminated) else 128 + signal.SIGINT
        raise typer.Exit(code) from None
    finally:
        _json.reset(own)


def _joined_notes(text: str, problem: BaseException) -> str:
    message = "\n".join([text, *getattr(problem, "__notes__", [])])
    echo(f"slackwater: {message}", err=True)
    return message


class ReportedFailure(SlackwaterError):
    """A failure is part of the report that stdout already has."""


def load(target: str) -> Loaded:
    """Import the user's file and return its flow, and the module.

    Raises:
        CtrlC: a signal came, and the file has caught its exception.
    """
    path, name = split_target(target)
    if not path.is_file():
        raise typer.BadParameter(f"there is no file {str(path)!r}", param_hint="FLOW.py[:name]")
    loaded = load_flow(path, name)
    END_SIGNALS.check()
    return loaded


def placed(wishes: list[str] | None) -> dict[str, str]:
    """Return {stage: slot or node} of `STAGE=SLOT` options."""
    places = {}
    for wish in wishes or []:
        stage, sign, slot = wish.partition("=")
        if not (stage and sign and slot):
            raise typer.BadParameter(f"{wish!r} is not STAGE=SLOT", param_hint="--placement")
        places[stage] = slot
    return places


def console_of(stream: Any) -> Console:
    """Return a console for a terminal, or else for plain lines."""
    return Console(file=stream) if stream.isatty() else plain_console(stream)


def print_report(report: JobReport) -> None:
    """Print a report to stdout."""
    console = console_of(sys.stdout)
    if console.is_terminal:
        render_report(report, console)
    else:
        echo(report_text(report), nl=False)
    for sink in report.sinks:
        echo(f"{sink.name}: {sparkline(sink.series, width=40)}")


def print_json(plain: dict[str, Any]) -> None:
    """Print one JSON object to stdout."""
    (_json.get() or _Json(sys.stdout, is_wanted=True)).print(plain)

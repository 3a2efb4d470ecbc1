"""Command `slackwater doctor`: finds problems of this machine or a cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.shell import AsJson, console_of, print_json, printed_errors
from slackwater.doctor.findings import (
    Finding,
    findings_of_checkpoints,
    findings_of_skew,
    has_problem,
)
from slackwater.report.live_view import LiveView
from slackwater.report.sanitize import echo, sanitized
from slackwater.runtime.errors import SlackwaterError

COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[CLUSTER.yaml]", help="A file for Ray's launcher (`ray up`)."),
    ] = None,
    *,
    address: Annotated[
        str | None, typer.Option(help="A cluster that is up: host:port, ray://host:port, or auto.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find problems of this machine, of a cluster, or of its launcher file."""
    if file is not None and address is not None:
        raise typer.BadParameter("give a launcher file (cluster.yaml) or --address, not both")
    with printed_errors(as_json=as_json):
        findings = _examine(file, address, None if as_json else LiveView(console_of(sys.stderr)))
        if as_json:
            print_json(
                {
                    "findings": [asdict(finding) for finding in findings],
                    "well": not has_problem(findings),
                }
            )
        else:
            _print(findings)
    if has_problem(findings):
        raise typer.Exit(1)


def _examine(file: Path | None, address: str | None, progress: LiveView | None) -> list[Finding]:
    def say(line: str) -> None:
        if progress is not None:
            progress.say(line)

    if file is not None:
        from slackwater.doctor.launcher_file import examine_file  # noqa: PLC0415 (brings in Ray)

        say(f"looking at {file} and its hosts")
        return examine_file(file, environ=os.environ)
    if address is None:
        from slackwater.doctor.here import examine_here  # noqa: PLC0415 (brings in Ray)

        return examine_here()
    from slackwater.doctor.address import examine_address  # noqa: PLC0415

    findings = examine_address(address, say=say)
    if not has_problem(findings):
        say("looking at the jobs that run")
        findings += _running_jobs(address)
    return findings


def _running_jobs(address: str) -> Iterator[Finding]:
    """Yield the warnings of the jobs that run: skewed steps, checkpoints, recoveries."""
    from slackwater.cli.cluster_commands import connected  # noqa: PLC0415 (brings in Ray)

    with connected(address) as cluster:
        for job in cluster.jobs():
            if job.status == "running":
                with suppress(SlackwaterError):  # it has just ended
                    report = job.report()
                    yield from findings_of_skew(job.id, report)
                    yield from findings_of_checkpoints(job.id, report)


def _print(findings: Sequence[Finding]) -> None:
    width = max(len(finding.about) for finding in findings)
    for finding in findings:
        line = finding.line(width)
        # stdout without a terminal gets no colours.
        typer.echo(typer.style(line[:8], fg=COLOURS[finding.level]) + sanitized(line[8:]))
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    summary = f"{problems} to mend, {warnings} to know of, {len(findings)} checks"
    echo(f"\n{summary if problems or warnings else f'all is well: {len(findings)} checks'}")

"""Command `slackwater timesync`: a time server, its key, and a client's view."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Annotated

import typer

from slackwater.cli.shell import AsJson, print_json, printed_errors
from slackwater.end_signals import END_SIGNALS
from slackwater.ingest.timesync.client import TimeSync
from slackwater.ingest.timesync.key import new_key
from slackwater.ingest.timesync.server import LOOPBACK, TimeServer
from slackwater.report.sanitize import echo
from slackwater.runtime.model import format_ns

timesync = typer.Typer(
    help="Compare the clocks of sources with ours, over UDP.", no_args_is_help=True
)

Key = Annotated[str, typer.Option("--key", metavar="FILE", help="The key that both sides have.")]


@timesync.command()
def key(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A new file, for you alone.")],
) -> None:
    """Write a new key; copy the file to each client (scp -p)."""
    with printed_errors(as_json=False):
        new_key(file)
    echo(f"a new key is in {file}; who has it can say what time it is")


@timesync.command()
def serve(
    *,
    key: Key,
    host: Annotated[
        str, typer.Option(help="The address to listen on; by default only this host gets there.")
    ] = LOOPBACK,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: a free one.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Serve this host's time to clients with the key, until Ctrl-C."""
    with END_SIGNALS.command(), printed_errors(as_json=as_json), END_SIGNALS.noted():
        with TimeServer(key, host=host, port=port) as server:
            echo(f"the time is told at {server.endpoint} (UDP), until Ctrl-C", err=as_json)
            with suppress(KeyboardInterrupt), END_SIGNALS.raised():
                threading.Event().wait()
        END_SIGNALS.acted_on()
    if as_json:
        counts = {"answered": server.answered, "refused": server.refused}
        print_json({"endpoint": server.endpoint, **counts})
    else:
        echo(f"{server.answered:,} questions answered; {_refused(server.refused)}")


@timesync.command()
def ask(
    server: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Of the time server.")],
    *,
    key: Key,
    as_json: AsJson = False,
) -> None:
    """Measure this host's clock offset by ten exchanges with a time server."""
    with printed_errors(as_json=as_json):
        sync = TimeSync(server, key)
        try:
            sync.ask()
            now = sync.now()
        finally:
            sync.close()
    if as_json:
        text = {"offset_ns": now.offset_ns, "bound_ns": now.bound_ns}
        text |= {"round_trip_ns": sync.round_trip_ns, "exchanges": sync.exchanges_done}
        print_json({**text, "unanswered": sync.unanswered, "refused": sync.refused})
        return
    way = "behind" if now.offset_ns >= 0 else "ahead of"
    echo(
        f"this clock is {format_ns(abs(now.offset_ns))} {way} the server's, "
        f"± {format_ns(now.bound_ns)}: {sync.exchanges_done} exchanges, the best took "
        f"{format_ns(sync.round_trip_ns)}; {_refused(sync.refused)}"
    )


def _refused(counts: dict[str, int]) -> str:
    words = ", ".join(f"{count:,} {why.replace('_', ' ')}" for why, count in counts.items())
    return f"refused: {words}" if words else "nothing refused"

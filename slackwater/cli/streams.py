"""Handle stdout and stderr that are closed, or whose disk is full."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from slackwater.end_signals import END_SIGNALS

__all__ = ["call_with_streams"]


class _Stream(io.TextIOWrapper):
    """Stream that notes whether a write has failed."""

    is_lost = False

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            self.is_lost = True
            raise

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            self.is_lost = True
            raise


def call_with_streams(call: Callable[[], None]) -> None:
    """Call the command line; exit with 1 and one line if output cannot be written."""
    _open_closed()
    with _noting("stdout") as stdout, _noting("stderr") as stderr:
        try:
            try:
                call()
            finally:
                stdout.flush()
        except OSError as problem:
            lost = [stream_made for stream_made in (stdout, stderr) if stream_made.is_lost]
            if not lost:
                raise
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in lost:  # they may still hold text, and would fail again at the exit
                os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            END_SIGNALS.check()  # SIGHUP: the terminal has gone, and output with it
            if problem.errno != errno.EPIPE:  # the reader of a pipe has read enough
                stderr.write(
                    f"slackwater: the output cannot be written ({problem.strerror}); make room "
                    "there, or send it elsewhere\n"
                )
            sys.exit(1)


@contextmanager
def _noting(name: str) -> Iterator[_Stream]:
    """Replace a stream by ours, which writes any character: not every terminal has µ."""
    old = getattr(sys, name)
    made = _Stream(
        old.buffer,
        encoding=old.encoding,
        errors="replace",
        line_buffering=old.line_buffering,
        write_through=old.write_through,
    )
    setattr(sys, name, made)
    try:
        yield made
    finally:
        setattr(sys, name, old)
        made.detach()  # else it would close the shared file


def _open_closed() -> None:
    """Open closed streams, or the next opened file would get their descriptor."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_WRONLY)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        stream = os.fdopen(number, "w")
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
        if name == "stdout" and sys.stderr is not None:
            sys.stderr.write("slackwater: stdout is closed, so what is printed there is lost\n")

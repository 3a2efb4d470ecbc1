"""Handle stdout and stderr that are closed, or whose disk is full."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["call_with_streams"]


class _Stream(io.TextIOWrapper):
    """A stream that records whether a write failed."""

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
    """Call the command line; exit with 1 and one line if its output fails."""
    _open_closed()
    with _noting("stdout") as stdout, _noting("stderr") as stderr:
        try:
            try:
                call()
            finally:
                stdout.flush()
        except OSError as problem:
            lost = [stream for stream in (stdout, stderr) if stream.is_lost]
            if not lost:
                raise
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in lost:  # they may still hold text, and would fail again at the exit
                os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            if problem.errno != errno.EPIPE:  # the reader has read enough
                stderr.write(
                    f"slackwater: the output cannot be written ({problem.strerror}); make room "
                    "there, or send it elsewhere\n"
                )
            sys.exit(1)


@contextmanager
def _noting(name: str) -> Iterator[_Stream]:
    """Replace a stream by ours, which encodes any character: some terminals lack µ."""
    old = getattr(sys, name)
    stream = _Stream(
        old.buffer,
        encoding=old.encoding,
        errors="replace",
        line_buffering=old.line_buffering,
        write_through=old.write_through,
    )
    setattr(sys, name, stream)
    try:
        yield stream
    finally:
        setattr(sys, name, old)
        stream.detach()  # else it would close the shared file


def _open_closed() -> None:
    """Open closed streams, or a file opened next would take their number."""
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
            sys.stderr.write("slackwater: stdout is closed, so its output is lost\n")

"""Turn the system's refusals of a folder of checkpoints into errors with a way out."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from slackwater.actors.kernel.plain_files import free_room, no_folder_at
from slackwater.runtime.errors import CheckpointError
from slackwater.runtime.shown import text_of
from slackwater.runtime.sinks.remedies import PathFacts, free_there, remedy

__all__ = ["refusals"]

_ELSEWHERE = "choose another folder, which all nodes share"
_LARGER = "raise the limit of a file's size (ulimit -f)"


@contextmanager
def refusals(what: str, folder: Path) -> Iterator[None]:
    """Raise CheckpointError where the system raises OSError, which stays its cause.

    Args:
        what: fact, such as "checkpoint 7 of slot 'a' could not be written to".
        folder: folder of the checkpoints.
    """
    try:
        yield
    except OSError as problem:
        facts = _facts(folder)
        reason = os.strerror(problem.errno) if problem.errno else text_of(problem)
        free = free_there(problem.errno, facts)
        if problem.errno == errno.EFBIG:
            way_out = _LARGER
        else:
            way_out = remedy(problem.errno, facts, otherwise=_ELSEWHERE)
        raise CheckpointError(f"{what} {folder}: {reason}{free}; {way_out}") from problem


def _facts(folder: Path) -> PathFacts:
    free_bytes, has_inodes, is_gone = None, True, False
    with suppress(OSError):
        is_gone = not os.path.lexists(folder)
    with suppress(OSError):
        free_bytes, has_inodes = free_room(folder)
    return PathFacts(
        path=str(folder),
        is_folder_gone=is_gone,
        no_folder=no_folder_at(folder),
        free_bytes=free_bytes,
        has_inodes=has_inodes,
    )

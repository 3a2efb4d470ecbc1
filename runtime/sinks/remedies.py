"""Hints for a sink whose path the system refuses: one for each cause."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from slackwater.runtime.errors import MORE_FILES

__all__ = ["PathFacts", "free_there", "remedy"]

ELSEWHERE = "choose another path"


@dataclass(frozen=True, kw_only=True)
class PathFacts:
    """Facts of a sink's path at a refusal.

    Attributes:
        path: path of the output.
        is_file: whether the output is one file.
        is_folder_gone: whether its folder was there, and is not any more.
        no_folder: path where a folder should be and is none, such as a file; None if none exists.
        odd_manifest, odd_lock: their paths, if no regular file is there, such as a folder.
        has_parts: whether readers see files there.
        free_bytes: free bytes of its file system; None if unknown.
        has_inodes: whether the file system can hold more files.
    """

    path: str = ""
    is_file: bool = False
    is_folder_gone: bool = False
    no_folder: str | None = None
    odd_manifest: str | None = None
    odd_lock: str | None = None
    has_parts: bool = False
    free_bytes: int | None = None
    has_inodes: bool = True


def remedy(number: int | None, facts: PathFacts, *, otherwise: str = ELSEWHERE) -> str:
    """Return a hint that removes the cause of a refusal.

    Args:
        number: number of the system's error; None if there is no error of the system.
        facts: facts about the path.
        otherwise: hint where no other helps.
    """
    if number in (errno.EMFILE, errno.ENFILE):  # no other path would help
        return MORE_FILES
    if number == errno.EFBIG:
        smaller = "pass a smaller rows=, the rows of a part"
        if facts.is_file:
            smaller = "omit the ending, so that a folder takes parts of rows= rows each"
        return f"{smaller}, or raise the limit of a file's size (ulimit -f)"
    known = _of_facts(number, facts) or _REMEDIES.get(number or 0)
    return otherwise if known is None else f"{known}, or {otherwise}"


def _of_facts(number: int | None, facts: PathFacts) -> str | None:
    if facts.no_folder is not None:
        return f"{facts.no_folder} is not a folder: move it away"
    if facts.odd_manifest is not None:
        away = "move it away"
        if facts.has_parts:  # without a manifest no run touches them
            away = f"move {'it and ' if facts.is_file else ''}{facts.path} away"
        return f"{facts.odd_manifest} is not a regular file: {away}"
    if facts.odd_lock is not None:
        return f"{facts.odd_lock} is not a regular file: move it away"
    if facts.is_folder_gone:
        return "its folder is gone: see which program removes it"
    if number == errno.ENOSPC and not facts.has_inodes:
        return "remove files there, since no more can be made"
    return None


def free_there(number: int | None, facts: PathFacts) -> str:
    """Return the free room in brackets, where it tells something; else ""."""
    if number != errno.ENOSPC or facts.is_folder_gone or facts.free_bytes is None:
        return ""
    if not facts.has_inodes:
        return " (no inodes are free there)"
    return f" ({facts.free_bytes / 2**20:,.1f} MiB free there, too little)"


_REMEDIES = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "remove files of this user there, or have the quota raised",
    errno.EROFS: "mount that file system for writing",
    errno.EACCES: "let this user read and write there",
    errno.EPERM: "let this user read and write there",
    errno.ENOENT: "see which program removes files there",
    errno.EIO: "check that disk",
    errno.ESTALE: "mount that file system again",
}

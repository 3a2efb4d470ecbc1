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
        is_file: whether the output is one file.
        has_folder: whether its folder is there.
        odd_manifest: path of the manifest if no regular file is there, such as a folder.
        free_bytes: of its file system; None: unknown.
        has_inodes: whether the file system can hold more files.
    """

    is_file: bool = False
    has_folder: bool = True
    odd_manifest: str | None = None
    free_bytes: int | None = None
    has_inodes: bool = True


def remedy(number: int | None, facts: PathFacts, *, otherwise: str = ELSEWHERE) -> str:
    """Return a hint that removes the cause of a refusal.

    Args:
        number: of the system's error; None: no error of the system.
        facts: of the path.
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
    if facts.odd_manifest is not None:
        return f"{facts.odd_manifest} is no file: move it away"
    if not facts.has_folder:
        return "its folder is gone: see which program removes it"
    if number == errno.ENOSPC and not facts.has_inodes:
        return "remove files there, since no more can be made"
    return None


def free_there(number: int | None, facts: PathFacts) -> str:
    """Return the free room in brackets, where it tells something; else ""."""
    if number != errno.ENOSPC or not facts.has_folder or facts.free_bytes is None:
        return ""
    if not facts.has_inodes:
        return " (no inodes are free there)"
    return f" ({facts.free_bytes / 2**20:,.1f} MiB free there)"


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

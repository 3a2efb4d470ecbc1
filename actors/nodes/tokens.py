"""Find a cluster's token file, and check that no other user can read it.

Nothing here reads or shows the token: its holder can run programs on every node.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

from slackwater.runtime.errors import ClusterError

__all__ = ["has_token", "refuse_shared_token", "sharing", "token_file"]


def token_file(environ: Mapping[str, str]) -> Path | None:
    """Return the file from which Ray reads the token, present or not.

    None if the token itself is in the environment, which comes first.
    """
    if environ.get("RAY_AUTH_TOKEN"):
        return None
    home = environ.get("HOME") or os.path.expanduser("~")
    return Path(environ.get("RAY_AUTH_TOKEN_PATH") or f"{home}/.ray/auth_token")


def has_token(environ: Mapping[str, str]) -> bool:
    """Return whether the environment or a file has a token."""
    path = token_file(environ)
    return path is None or path.exists()


def sharing(path: Path) -> str | None:
    """Return which access others have to a token file, and the remedy; None if none.

    Raises:
        OSError: no such file.
    """
    mode = stat.S_IMODE(path.stat().st_mode)
    ways = {"read": stat.S_IRGRP | stat.S_IROTH, "write": stat.S_IWGRP | stat.S_IWOTH}
    shared = [way for way, bits in ways.items() if mode & bits]
    if not shared:
        return None
    return (
        f"the token file {path} has mode {mode:04o}: others than its owner can "
        f"{' and '.join(shared)} it; run: chmod 600 {shlex.quote(str(path))}"
    )


def refuse_shared_token(environ: Mapping[str, str]) -> None:
    """Check that only its owner can read or write a token file in use.

    Args:
        environ: the environment that Ray will see.

    Raises:
        ClusterError: other users can.
    """
    path = token_file(environ)
    if environ.get("RAY_AUTH_MODE", "").lower() != "token" or path is None or not path.exists():
        return
    problem = sharing(path)
    if problem is not None:
        raise ClusterError(
            f"{problem}. A holder of the token can run programs on the cluster as you; if others "
            "were on this host meanwhile, make a new one for all its nodes"
        )

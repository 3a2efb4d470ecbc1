"""Paths of files as users write them: on this machine, or refused."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

__all__ = ["NoLocalPath", "local_path"]

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/(?P<rest>.*)", re.DOTALL)
"""Schemes need one slash only: pathlib makes s3:/bucket of s3://bucket. A drive has one letter."""


class NoLocalPath(ValueError):
    """A path with a scheme whose files are not on a file system of this machine."""


def local_path(path: str | os.PathLike[str]) -> str:
    """Return a path as the system takes it: `~` is the user's folder, `file://` is removed.

    Raises:
        NoLocalPath: it has another scheme, or names another host.
    """
    text = os.fspath(path)
    match = _SCHEME.match(text)
    if match is None:
        return os.path.expanduser(text)
    scheme, rest = match["scheme"].lower(), match["rest"]
    if scheme != "file":
        raise NoLocalPath(
            f"{text!r} has the scheme {scheme}://, and files are read and written on file systems "
            f"of the machine; a folder of that name is './{text}'"
        )
    if rest.startswith("/"):  # file://host/path; the host is mostly left out
        host, _, rest = rest[1:].partition("/")
        if host not in ("", "localhost"):
            raise NoLocalPath(
                f"{text!r} names the host {host!r}, and files are read and written on file "
                f"systems of the machine; a path of this one is 'file:///{host}/{rest}'"
            )
    return "/" + unquote(rest)

"""Paths of files as users write them: on this machine, or refused."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from slackwater.runtime.shown import shown

__all__ = ["NoLocalPath", "local_path"]

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/(?P<rest>.*)", re.DOTALL)
"""Schemes with one slash, as pathlib makes s3:/bucket of s3://bucket. Drives have one letter."""


class NoLocalPath(ValueError):
    """A path is not on this machine, by its scheme, user or letters.

    Attributes:
        is_elsewhere: whether it may be a path on another machine.
    """

    def __init__(self, text: str, *, is_elsewhere: bool = True) -> None:
        super().__init__(text)
        self.is_elsewhere = is_elsewhere


def local_path(path: str | os.PathLike[str]) -> str:
    """Return a path for the system: `~` is expanded, `file://` removed.

    Raises:
        NoLocalPath: the path is empty, has another scheme, names another host or an unknown user,
            or has a null character.
    """
    text = os.fspath(path)
    if not text.strip():
        raise NoLocalPath(
            f"the path {shown(text)} is empty, as of an unset variable; '.' is the present folder",
            is_elsewhere=False,
        )
    if "\0" in text:
        raise NoLocalPath(
            f"{shown(text)} has a null character, which no path can have; leave it out",
            is_elsewhere=False,
        )
    match = _SCHEME.match(text)
    if match is None:
        return _expanded(text)
    scheme, rest = match["scheme"].lower(), match["rest"]
    if scheme != "file":
        raise NoLocalPath(
            f"{shown(text)} has the scheme {scheme}://, and files are read and written on file "
            f"systems of the machine; a folder of that name is './{text}'"
        )
    if rest.startswith("/"):  # file://host/path; the host is mostly omitted
        host, _, rest = rest[1:].partition("/")
        if host not in ("", "localhost"):
            raise NoLocalPath(
                f"{shown(text)} names the host {host!r}, and files are read and written on file "
                f"systems of the machine; a path of this one is 'file:///{host}/{rest}'"
            )
    return "/" + unquote(rest)


def _expanded(text: str) -> str:
    path = os.path.expanduser(text)
    if text.startswith("~") and path == text:
        user = text[1:].partition("/")[0]
        whose = f"user {user!r}, who is" if user else "the user, which is"
        raise NoLocalPath(
            f"{shown(text)} begins with the home folder of {whose} not known here; a folder of "
            f"that name is './{text}'",
            is_elsewhere=False,
        )
    return path

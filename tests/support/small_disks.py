"""Small file systems of their own, for tests of full disks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A new folder with a file system of its own, in memory; skips the test where none may be.

    Args:
        folder: path of the folder.
        options: options of `mount`, such as "size=6m".
    """
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as problem:
        pytest.skip(f"no file system can be mounted here: {problem}")
    if done.returncode:
        pytest.skip(f"no file system can be mounted here (root may): {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S603, S607

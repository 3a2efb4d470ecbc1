"""A temporary folder of a process; the next process removes those of dead ones.

```
/tmp/slackwater-stream-3f2a/owner    locked by its process; unlocked by kill -9, too
```
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["TemporaryFolder"]

_OWNER = "owner"


class TemporaryFolder:
    """A new folder among temporary files. Those of dead processes with its prefix go first.

    Args:
        prefix: start of its name.

    Attributes:
        path: folder for its owner's files, which `close` removes, and `keep` does not.
    """

    def __init__(self, prefix: str) -> None:
        _remove_unowned(prefix)
        while True:
            self._whole = Path(tempfile.mkdtemp(prefix=prefix))
            if (owner := _lock(self._whole)) is not None:
                break  # else another process took it for a dead one's, as it was not locked yet
        self._owner: int | None = owner
        self.path = self._whole / "files"
        self.path.mkdir()

    def close(self) -> None:
        """Remove the folder. Idempotent."""
        if self._owner is not None:
            shutil.rmtree(self._whole, ignore_errors=True)
            os.close(self._owner)
            self._owner = None

    def keep(self) -> None:
        """Leave the folder to the user: no process removes it."""
        if self._owner is not None:
            (self._whole / _OWNER).unlink(missing_ok=True)
            os.close(self._owner)
            self._owner = None


def _remove_unowned(prefix: str) -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # another process has just removed it
            if folder.lstat().st_uid != os.geteuid() or not (folder / _OWNER).is_file():
                continue
            if (owner := _lock(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(owner)


def _lock(folder: Path) -> int | None:
    """Return a descriptor that locks a folder; None if another process has it."""
    path = folder / _OWNER
    try:
        owner = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(owner).st_ino == path.stat().st_ino:
            return owner
    os.close(owner)
    return None

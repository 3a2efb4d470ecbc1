"""How the files of tests are shared out among the processes of `pytest -n 2 --dist loadfile`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

MARK = "pytest.mark.spark"


class ByFile(LoadFileScheduling):
    """A file at a time, and all files with Spark to one process.

    A session is four JVMs that start on all the CPU there is: two at once would take as long as
    one behind the other, and longer than Spark waits for its parts.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return MARK if _starts_spark(self.config.rootpath / file) else str(file)


@cache
def _starts_spark(path: Path) -> bool:
    return MARK in path.read_text(encoding="utf-8")

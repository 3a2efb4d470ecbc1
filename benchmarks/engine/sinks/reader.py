"""A reader of a folder of results that looks all the while, as anybody's reader would."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow.parquet as pq

POLL_S = 0.005


def rows_of(path: Path) -> list[int]:
    """Return the column `n` of a whole file; raises what its reader would meet."""
    if path.suffix == ".parquet":
        found: list[int] = pq.read_table(path)["n"].to_pylist()
        return found
    text = path.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        raise ValueError("its last line is not whole")
    return [json.loads(line)["n"] for line in text.splitlines()]


def shown(folder: Path) -> dict[str, bytes]:
    """Return what readers see: {name: bytes}."""
    files = sorted(path for path in folder.glob("part-*"))
    return {path.name: path.read_bytes() for path in files}


class Watcher:
    """Looks at a folder until it is left, from a thread of its own.

    Args:
        folder: of results.
        expected: what the whole output is.

    Attributes:
        problems: what a reader must never see, a sentence each.
        looks: how often it looked.
        rows: how many rows are visible.
    """

    def __init__(self, folder: Path, expected: list[int]) -> None:
        self._folder, self._expected = folder, expected
        self._known: dict[str, tuple[int, int]] = {}  # {part: (size, time of change)}
        self._began_s: dict[str, float] = {}  # {hidden file: when it was first seen}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.problems: list[str] = []
        self.looks = self.rows = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self.look()

    def wait_for(self, rows: int, *, within_s: float) -> bool:
        """Wait until so many rows are visible; return whether they are."""
        until_s = time.monotonic() + within_s
        while self.rows < rows and time.monotonic() < until_s:
            self._is_over.wait(POLL_S)
        return self.rows >= rows

    def waited_s(self) -> float:
        """Return for how long the oldest row that is not visible has been written, 0 if none."""
        now_s = time.monotonic()
        hidden = {path.name for path in self._folder.glob(".part-*.incomplete")}
        return max(
            (now_s - at_s for name, at_s in self._began_s.items() if name in hidden), default=0
        )

    def _watch(self) -> None:
        while not self._is_over.wait(POLL_S):
            self.look()

    def look(self) -> None:
        """Look once."""
        self.looks += 1
        for path in self._folder.glob(".part-*.incomplete"):
            self._began_s.setdefault(path.name, time.monotonic())
        there: set[str] = set()
        for path in sorted(self._folder.glob("part-*")):
            there.add(path.name)
            try:
                facts = path.stat()
                if path.name not in self._known:
                    self._take(path)
                elif self._known[path.name] != (facts.st_size, facts.st_mtime_ns):
                    self.problems.append(f"{path.name} has changed")
                self._known[path.name] = (facts.st_size, facts.st_mtime_ns)
            except Exception as problem:  # whatever a reader of it would have met
                self.problems.append(f"{path.name}: {type(problem).__name__}: {problem}")
        for name in self._known.keys() - there:
            self.problems.append(f"{name} has gone")

    def _take(self, path: Path) -> None:
        found = rows_of(path)
        if found != self._expected[self.rows : self.rows + len(found)]:
            self.problems.append(f"{path.name} does not go on behind the part before it")
        self.rows += len(found)

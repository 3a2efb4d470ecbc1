"""How results are written to files: where, in which form, and what becomes of what is there."""

from __future__ import annotations

import os.path
from dataclasses import dataclass


@dataclass(frozen=True)
class FileSettings:
    """The settings of a sink that writes files.

    Attributes:
        format: "parquet" or "jsonl".
        path: a folder of parts, or one file.
        overwrite: replace what a manifest of ours names; otherwise results there are refused.
        resume: go on behind the rows that an earlier run of the same flow has committed.
        rows: after how many rows a part ends; None: as many as make a good file.
        every_ns: how long a row may wait for its part to be published; None: till it is full.
    """

    format: str
    path: str
    overwrite: bool = False
    resume: bool = False
    rows: int | None = None
    every_ns: int | None = None

    @property
    def is_file(self) -> bool:
        """Whether the path is one file, and not a folder of parts."""
        ending = os.path.splitext(os.path.normpath(self.path))[1]
        return ending == ".parquet" if self.format == "parquet" else bool(ending)

    @property
    def is_live(self) -> bool:
        """Whether readers are to see parts while it runs."""
        return self.every_ns is not None or self.rows is not None

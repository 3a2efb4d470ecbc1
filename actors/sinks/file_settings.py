"""Settings of a sink that writes files: path, format, and treatment of earlier results."""

from __future__ import annotations

import os.path
from dataclasses import dataclass


@dataclass(frozen=True)
class CsvFormat:
    """Form of CSV files.

    Attributes:
        sep: the separator of values: one character.
        header: whether the first line of each file has the names of the columns.
        nulls: text of a null; a value of this text is in quotes.
    """

    sep: str = ","
    header: bool = True
    nulls: str = ""

    def describe(self) -> str:
        """Return what differs from the usual form; empty if nothing does."""
        words = []
        if self.sep != ",":
            words.append(f"sep={self.sep!r}")
        if not self.header:
            words.append("no header")
        if self.nulls:
            words.append(f"null is {self.nulls!r}")
        return ", ".join(words)


PLAIN_CSV = CsvFormat()


@dataclass(frozen=True)
class FileSettings:
    """Settings of a sink that writes files.

    Attributes:
        format: "parquet", "jsonl" or "csv".
        path: a folder of parts, or one file.
        overwrite: replace the parts in our manifest; otherwise a path with results is refused.
        resume: go on after the rows that an earlier run of the same flow has committed.
        rows: after how many rows a part ends; as many as make a good file if None.
        every_ns: how long a row may wait for its part to be published; None if only a full one is.
        csv: form of CSV files.
    """

    format: str
    path: str
    overwrite: bool = False
    resume: bool = False
    rows: int | None = None
    every_ns: int | None = None
    csv: CsvFormat = PLAIN_CSV

    @property
    def is_file(self) -> bool:
        """Whether the path is one file, not a folder of parts."""
        ending = os.path.splitext(os.path.normpath(self.path))[1]
        return ending == ".parquet" if self.format == "parquet" else bool(ending)

    @property
    def is_live(self) -> bool:
        """Whether readers see parts while the job runs."""
        return self.every_ns is not None or self.rows is not None

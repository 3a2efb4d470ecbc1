"""Guess types of text files from their first megabyte, or take the given ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from slackwater.ingest.inputs import FileInput

__all__ = ["RE_ENCODE", "SAY_TIME", "SAY_TYPE", "TextInput"]

RE_ENCODE = "write the file as UTF-8 (iconv -f latin1 -t utf-8), or choose others with columns=[…]"

SAY_TYPE = (
    "say a type that all have, such as types={{{name!r}: 'string'}} (or 'float64', which rounds)"
)
"""The hint for a value that is not of the type so far."""

SAY_TIME = (
    "say a type that all have, such as types={{{name!r}: 'timestamp[ns]'}}, "
    "'timestamp[ns, tz=UTC]' where all have a zone, or 'string'"
)
"""The same hint for times."""


@dataclass(frozen=True, kw_only=True)
class TextInput(FileInput):
    """Text files whose types are guessed from their first megabyte."""

    untold: ClassVar[str] = "say them with types={'column': 'float64', …}"

    def _schema_of(self, files: list[str]) -> pa.Schema:
        if self.types and all(os.path.getsize(path) == 0 for path in files):
            return self._chosen(pa.schema(self.types), files[0])
        return super()._schema_of(files)

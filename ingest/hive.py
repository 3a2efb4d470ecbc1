"""Columns of hive folders: `region=eu/day=2024-01-02/part.parquet` has region and day.

Spark, Hive and DuckDB write such folders, whose files lack these columns.
"""

from __future__ import annotations

import datetime
import glob
import os
import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa

from slackwater.runtime.errors import IngestError, SchemaError
from slackwater.runtime.model.exact_casts import cast_of_decimals
from slackwater.runtime.shown import shown

__all__ = ["FolderColumns", "folder_columns", "types_of_folders", "value_of_folder"]

_NULL = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

FolderColumns = Mapping[str, Mapping[str, str | None]]
"""{file: {column: its text; None: null}}; each file has the same columns."""


def folder_columns(
    pattern: str, files: Sequence[str], *, folder: str, wanted: bool | None
) -> FolderColumns:
    """Return the columns of folders below the pattern's own.

    Args:
        pattern: a file, a folder or a pattern.
        files: files that it matches.
        folder: start of a relative pattern.
        wanted: True if each file must have some; False if none count; None if they count where
            all files have the same.

    Raises:
        IngestError: they are wanted, and a file lacks one that another has.
    """
    if wanted is False:
        return {path: {} for path in files}
    root = _root(os.path.join(folder, pattern))
    found = {path: _of_path(os.path.relpath(path, root)) for path in files}
    first = found[files[0]]
    other = next((path for path in files if list(found[path]) != list(first)), None)
    if first and other is None:
        return found
    if wanted:
        others = "" if other is None else f", and {other} {_said(found[other])}"
        raise IngestError(
            f"hive=True, and {files[0]} {_said(first)}{others}; all files need the same; move "
            "one, or omit hive=True"
        )
    return {path: {} for path in files}


def types_of_folders(found: FolderColumns) -> pa.Schema:
    """Return the columns with types that all their texts have: int64, date32 or string."""
    names = list(next(iter(found.values()), {}))
    return pa.schema([(name, _guess([each[name] for each in found.values()])) for name in names])


def value_of_folder(text: str | None, field: pa.Field, path: str) -> pa.Scalar:
    """Return a column's value in a file.

    Raises:
        SchemaError: it is not of the column's type.
    """
    if text is None:
        return pa.scalar(None, field.type)
    try:
        return cast_of_decimals(pa.array([text]), field.type)[0]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise SchemaError(
            f"{path}: {shown(text)} in the folder's name is not of type {field.type}, the type of "
            f"column {field.name!r}; say another, types={{{field.name!r}: 'string'}}"
        ) from problem


def _root(path: str) -> str:
    """Return the folder that a pattern itself names."""
    if os.path.isdir(path):
        return path
    if os.path.exists(path):
        return os.path.dirname(path)
    while glob.has_magic(path):
        path = os.path.dirname(path)
    return path


def _said(columns: Mapping[str, str | None]) -> str:
    names = ", ".join(f"{name}=…" for name in columns)
    return f"is in folders {names}" if names else "is in no folder key=value"


def _of_path(path: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for part in path.split(os.sep)[:-1]:
        key, sign, value = part.partition("=")
        if not (sign and key):
            continue
        name = unquote(key)
        if name in found:
            raise IngestError(
                f"{path}: two of its folders are named {name!r}=…; rename one, or say hive=False"
            )
        found[name] = None if value == _NULL else unquote(value)
    return found


def _guess(texts: Sequence[str | None]) -> pa.DataType:
    given = [text for text in texts if text is not None]
    if given and all(_WHOLE.fullmatch(text) for text in given):
        return pa.int64()
    return pa.date32() if given and all(map(_is_day, given)) else pa.string()


def _is_day(text: str) -> bool:
    if not _DAY.fullmatch(text):
        return False
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True

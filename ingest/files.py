"""Read parquet, JSON lines and CSV files block by block, without Spark.

An input is a frozen description that pickles to any node. The first file defines the columns; every
other file must have them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from slackwater.ingest.csv_input import CsvInput
from slackwater.ingest.jsonl_input import JsonLinesInput
from slackwater.ingest.parquet_input import ParquetInput
from slackwater.runtime.errors import IngestError, SettingError
from slackwater.runtime.local_path import NoLocalPath, local_path
from slackwater.runtime.model.type_names import arrow_type

Path = str | os.PathLike[str]
Types = Mapping[str, pa.DataType | str]
"""{column: Arrow type, or its name such as "float64"}."""


def parquet(
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = 65_536,
    types: Types | None = None,
) -> ParquetInput:
    """Return the rows of parquet files, file by file in the order of their names.

    Args:
        path: a file, a folder (all *.parquet below it) or a pattern such as "loops/*.parquet";
            a relative one starts in the present folder.
        columns: the columns to read; None: all.
        batch_rows: most rows that are read at a time.
        types: of columns to be read as another type than theirs.

    Raises:
        SettingError: batch_rows < 1, or a type unknown to Arrow.
        IngestError: the path has a scheme such as s3://.
    """
    return ParquetInput(types=_typed(types), **_common("parquet", path, columns, batch_rows))


def jsonl(
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = 65_536,
    types: Types | None = None,
) -> JsonLinesInput:
    """Return the rows of files with one JSON object a line; a `.gz` is unpacked.

    Args:
        path: as for `parquet`; in a folder all *.jsonl, *.ndjson and *.json.
        columns: the fields to read; None: those of the first file's first megabyte, and any
            other is an error.
        batch_rows: as for `parquet`.
        types: of columns whose type the first megabyte does not show, or shows wrong.

    Raises:
        SettingError, IngestError: as for `parquet`.
    """
    return JsonLinesInput(types=_typed(types), **_common("jsonl", path, columns, batch_rows))


def csv(
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = 65_536,
    types: Types | None = None,
) -> CsvInput:
    """Return the rows of CSV files with a header line; a `.gz` is unpacked.

    Args:
        path: as for `parquet`.
        columns: as for `parquet`.
        batch_rows: as for `parquet`.
        types: of columns whose type the first megabyte does not show, or shows wrong.

    Raises:
        SettingError, IngestError: as for `parquet`.
    """
    return CsvInput(types=_typed(types), **_common("csv", path, columns, batch_rows))


def _common(
    kind: str, path: Path, columns: Sequence[str] | None, batch_rows: int
) -> dict[str, Any]:
    if isinstance(columns, str):
        raise SettingError(f"columns={columns!r} must be a list of names, such as [{columns!r}]")
    return {
        "pattern": _local(kind, path),
        "folder": os.getcwd(),
        "columns": None if columns is None else tuple(columns),
        "batch_rows": batch_rows,
    }


def _local(kind: str, path: Path) -> str:
    try:
        return local_path(path)
    except NoLocalPath as problem:
        way_out = "; read it through Spark, or mount it" if problem.is_elsewhere else ""
        raise IngestError(f"{kind}: {problem}{way_out}") from None


def _typed(types: Types | None) -> tuple[tuple[str, pa.DataType], ...]:
    typed = []
    for name, given in (types or {}).items():
        kind = arrow_type(given) if isinstance(given, str) else given
        if not isinstance(kind, pa.DataType):
            raise SettingError(
                f"types: {name!r} has type {given!r}, which is no Arrow type; use for example "
                "'int64', 'float64', 'string', 'bool', 'timestamp[ms]' or 'timestamp[ms, tz=UTC]'"
            )
        typed.append((name, kind))
    return tuple(typed)

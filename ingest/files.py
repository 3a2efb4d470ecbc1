"""Read parquet, JSON lines and CSV files block by block, without Spark.

An input is a frozen description that pickles to any node. The first file defines the columns; every
other file must have them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import pyarrow as pa

from slackwater.ingest.csv_input import CsvInput
from slackwater.ingest.dialect import Dialect, checked_encoding
from slackwater.ingest.inputs import Differing, FileInput
from slackwater.ingest.jsonl_input import JsonLinesInput
from slackwater.ingest.parquet_input import ParquetInput
from slackwater.ingest.partitioned_files import MOST_OPEN, PartitionedFiles, Parts
from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import IngestError, SettingError
from slackwater.runtime.local_path import NoLocalPath, local_path
from slackwater.runtime.model.diverted import OnBad
from slackwater.runtime.model.schema import with_usual_decimals
from slackwater.runtime.model.type_names import arrow_type
from slackwater.runtime.other_names import answer_to
from slackwater.runtime.shown import shown

Path = str | os.PathLike[str]
Types = Mapping[str, pa.DataType | str]
"""{column: Arrow type, or its name such as "float64"}."""


@checked_call
def parquet(
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = 65_536,
    types: Types | None = None,
    schema: Differing = "error",
    hive: bool | None = None,
    partitions: Parts | None = None,
    open_files: int | None = None,
) -> ParquetInput | PartitionedFiles:
    """Return the rows of parquet files, file by file in the order of their names.

    Args:
        path: a file, a folder (all *.parquet below it, in either case) or a pattern such as
            "loops/*.parquet"; a relative one starts in the present folder.
        columns: the columns to read; all if None.
        batch_rows: most rows that are read at a time.
        types: types of columns to be read as another type than theirs.
        schema: columns if files differ. "error": all files need those of the first; "first": those
            of the first, null where a file lacks one, and further ones are ignored; "union": the
            columns of all files, null where a file lacks one.
        hive: whether folders such as `day=2024-01-02` below the path are columns. If None, where
            all files have the same ones, and a column of that name in the files has precedence.
        partitions: "files": each file is in an order of its own, and its rows are read where their
            times are wanted; "row groups": each row group. If None, all files are one order.
        open_files: most files that partitions have open at once; 64 if None.

    Raises:
        SettingError: batch_rows or open_files < 1, or a type unknown to Arrow.
        IngestError: the path has a scheme such as s3://.
    """
    files = ParquetInput(
        types=_typed(types), **_common("parquet", path, columns, batch_rows, schema, hive)
    )
    return _in_parts(files, partitions, open_files)


@checked_call
def jsonl(  # noqa: PLR0913 - an option each
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = 65_536,
    types: Types | None = None,
    encoding: str = "utf-8",
    on_bad: OnBad = "error",
    schema: Differing = "error",
    hive: bool | None = None,
    partitions: Literal["files"] | None = None,
    open_files: int | None = None,
) -> JsonLinesInput | PartitionedFiles:
    """Return the rows of files with one JSON object a line, unpacked as for `csv`.

    Args:
        path: path as for `parquet`; in a folder all *.jsonl, *.ndjson and *.json.
        columns: the fields to read. If None, those of the first file's first megabyte, and any
            other is an error.
        batch_rows: rows of a block, as for `parquet`.
        types: types of columns whose type the first megabyte does not show, or shows wrong.
        encoding: encoding as for `csv`.
        on_bad: rule for bad rows, as for `csv`.
        schema: schema as for `parquet`.
        hive: setting of folders' names, as for `parquet`.
        partitions: "files", as for `parquet`.
        open_files: most files open at once, as for `parquet`.

    Raises:
        SettingError, IngestError: as for `csv`.
    """
    files = JsonLinesInput(
        types=_typed(types),
        encoding=checked_encoding(encoding),
        on_bad=on_bad,
        **_common("jsonl", path, columns, batch_rows, schema, hive),
    )
    return _in_parts(files, partitions, open_files)


@checked_call
def csv(  # noqa: PLR0913 - an option each
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = 65_536,
    types: Types | None = None,
    encoding: str = "utf-8",
    sep: str = ",",
    quote: str | None = '"',
    header: bool | Sequence[str] = True,
    comment: str | None = None,
    decimal: str = ".",
    nulls: Sequence[str] | None = None,
    newlines_in_values: bool = True,
    on_bad: OnBad = "error",
    schema: Differing = "error",
    hive: bool | None = None,
    partitions: Literal["files"] | None = None,
    open_files: int | None = None,
) -> CsvInput | PartitionedFiles:
    """Return the rows of CSV files; `.gz`, `.bz2`, `.zst` and `.lz4` are unpacked.

    Args:
        path: path as for `parquet`.
        columns: columns as for `parquet`.
        batch_rows: rows of a block, as for `parquet`.
        types: types of columns whose type the first megabyte does not show, or shows wrong.
        encoding: a codec of Python, such as "latin1", "cp1252" or "utf-16".
        sep: the character between values.
        quote: the character around values; None if quotes mean nothing.
        header: whether the first record has the names; False: they are f0, f1, …; a list: the
            names of columns of files without a header line.
        comment: lines that begin so are skipped, before the header too.
        decimal: "." or ",", of columns of floats and decimals.
        nulls: the texts that are null, in quotes or not, in columns of text too. If None, an empty
            value, NA, NULL, nan and the like in all columns but those of text.
        newlines_in_values: whether a line end in quotes belongs to the value; False: each line is
            a record, so an unclosed quote costs one line.
        on_bad: "error": a record that cannot be read ends the job; "skip": it is left out and
            reported; "divert": the same, and reported with its text.
        schema: schema as for `parquet`.
        hive: setting of folders' names, as for `parquet`.
        partitions: "files", as for `parquet`.
        open_files: most files open at once, as for `parquet`.

    Raises:
        SettingError: as for `parquet`; or an option is out of its range.
        IngestError: as for `parquet`.
    """
    names = header if isinstance(header, bool) else tuple(header)
    dialect = Dialect(
        encoding=checked_encoding(encoding),
        sep=sep,
        quote=quote,
        header=names,
        comment=comment,
        decimal=decimal,
        nulls=None if nulls is None else tuple(nulls),
        newlines_in_values=newlines_in_values,
    )
    files = CsvInput(
        types=_typed(types),
        dialect=dialect,
        on_bad=on_bad,
        **_common("csv", path, columns, batch_rows, schema, hive),
    )
    return _in_parts(files, partitions, open_files)


F = TypeVar("F", bound=FileInput)


def _in_parts(files: F, by: Parts | None, open_files: int | None) -> F | PartitionedFiles:
    """Return files as one partition, or as several."""
    if by is not None:
        return PartitionedFiles(
            files=files, by=by, most_open=MOST_OPEN if open_files is None else open_files
        )
    if open_files is not None:
        raise SettingError(
            f"open_files={open_files} is of partitions, and there is one, which has one file open; "
            "write partitions='files' too, or omit open_files"
        )
    return files


def _common(
    kind: str,
    path: Path,
    columns: Sequence[str] | None,
    batch_rows: int,
    schema: Differing,
    hive: bool | None,
) -> dict[str, Any]:
    return {
        "pattern": _local(kind, path),
        "folder": os.getcwd(),
        "columns": None if columns is None else tuple(columns),
        "batch_rows": batch_rows,
        "differing": schema,
        "hive": hive,
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
            usual = (
                "use for example 'int64', 'float64', 'string', 'bool', 'timestamp[ms]' or "
                "'timestamp[ms, tz=UTC]'"
            )
            way_out = answer_to("type", str(getattr(given, "__name__", given))) or usual
            raise SettingError(
                f"types: {name!r} has type {shown(given)}, which is not an Arrow type; {way_out}"
            )
        typed.append((name, with_usual_decimals(kind)))
    return tuple(typed)

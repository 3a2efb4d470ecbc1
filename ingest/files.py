"""Files without Spark: parquet, JSON lines and CSV, read block by block.

An input is a frozen description that pickles to whichever node reads it. The first file
says which columns and types there are; every other file must agree.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json

from ingest.inputs import FileInput
from runtime.errors import IngestError, SettingError
from runtime.local_path import NoLocalPath, local_path

Path = str | os.PathLike[str]
Types = Mapping[str, pa.DataType | str]
"""{column: Arrow type, or its name such as "float64"}."""


def parquet(
    path: Path, *, columns: Sequence[str] | None = None, batch_rows: int = 65_536
) -> ParquetInput:
    """Return the rows of parquet files, file by file in order of their names.

    Args:
        path: a file, a folder (all *.parquet below it) or a pattern such as "loops/*.parquet";
            a relative one starts where this is called.
        columns: the columns to read; None: all.
        batch_rows: at most this many rows are read at a time.

    Raises:
        SettingError: batch_rows < 1.
    """
    return ParquetInput(**_common("parquet", path, columns, batch_rows))


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
        types: of columns whose type the first megabyte does not show.

    Raises:
        SettingError: batch_rows < 1.
    """
    return JsonLinesInput(types=_typed(types), **_common("jsonl", path, columns, batch_rows))


def csv(
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = 65_536,
    types: Types | None = None,
) -> CsvInput:
    """Return the rows of CSV files whose first line names the columns; a `.gz` is unpacked.

    Args:
        path: as for `parquet`.
        columns: as for `parquet`.
        batch_rows: as for `parquet`.
        types: of columns whose type the first megabyte does not show.

    Raises:
        SettingError: batch_rows < 1.
    """
    return CsvInput(types=_typed(types), **_common("csv", path, columns, batch_rows))


@dataclass(frozen=True, kw_only=True)
class ParquetInput(FileInput):
    """Parquet files. Memory: one row group, and one block."""

    kind = "parquet"
    suffixes = (".parquet",)
    untold = "leave it out with columns=[…], or write it with a type"

    def schema(self) -> pa.Schema:
        """Return the columns to read; their types are in each file's footer, so all must agree.

        Raises:
            IngestError: no file, or one that cannot be read.
            SchemaError: a column is not there, or files differ.
        """
        files = self.files()
        schema = self._schema_of(files)
        for position, path in enumerate(files):
            with self._naming(files, position):
                self._check_agreement(path, self._whole_schema(path), schema)
        return schema

    def _whole_schema(self, path: str) -> pa.Schema:
        from pyarrow.parquet import read_schema  # noqa: PLC0415 (slow to import)

        return read_schema(path)

    def _blocks(self, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415

        with ParquetFile(path) as file:
            self._check_agreement(path, file.schema_arrow, schema)
            yield from file.iter_batches(batch_size=self.batch_rows, columns=schema.names)


@dataclass(frozen=True, kw_only=True)
class TextInput(FileInput):
    """Text files, whose types are told from their first megabyte.

    Attributes:
        types: ((column, type), …) known beforehand.
    """

    types: tuple[tuple[str, pa.DataType], ...]

    untold: ClassVar[str] = "say them with types={'column': 'float64', …}"

    def _schema_of(self, files: list[str]) -> pa.Schema:
        if self.types and all(os.path.getsize(path) == 0 for path in files):
            return self._chosen(pa.schema(self.types), files[0])
        return super()._schema_of(files)


@dataclass(frozen=True, kw_only=True)
class JsonLinesInput(TextInput):
    """One JSON object a line. A field that a line lacks is null there."""

    kind = "jsonl"
    suffixes = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")

    def _whole_schema(self, path: str) -> pa.Schema | None:
        if os.path.getsize(path) == 0:
            return None
        types = pa.schema(self.types) if self.types else None
        parse = arrow_json.ParseOptions(explicit_schema=types)
        with arrow_json.open_json(path, parse_options=parse) as reader:
            return reader.schema

    def _blocks(self, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if os.path.getsize(path) == 0:
            return
        parse = arrow_json.ParseOptions(
            explicit_schema=schema,
            unexpected_field_behavior="error" if self.columns is None else "ignore",
        )
        with arrow_json.open_json(path, parse_options=parse) as reader:
            yield from reader


@dataclass(frozen=True, kw_only=True)
class CsvInput(TextInput):
    """CSV with a header line."""

    kind = "csv"
    suffixes = (".csv", ".csv.gz")

    def _whole_schema(self, path: str) -> pa.Schema | None:
        if os.path.getsize(path) == 0:
            return None
        convert = arrow_csv.ConvertOptions(column_types=dict(self.types))
        with arrow_csv.open_csv(path, convert_options=convert) as reader:
            return reader.schema

    def _blocks(self, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if os.path.getsize(path) == 0:
            return
        convert = arrow_csv.ConvertOptions(column_types=schema, include_columns=self.columns)
        try:
            reader = arrow_csv.open_csv(path, convert_options=convert)
        except pa.ArrowKeyError:  # a chosen column is missing
            self._chosen(self._whole_schema(path) or schema, path)
            raise
        with reader:
            self._check_agreement(path, reader.schema, schema)
            yield from reader


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
        raise IngestError(f"{kind}: {problem}; read it through Spark, or mount it") from None


def _typed(types: Types | None) -> tuple[tuple[str, pa.DataType], ...]:
    typed = []
    for name, given in (types or {}).items():
        try:
            typed.append((name, pa.type_for_alias(given) if isinstance(given, str) else given))
        except ValueError as problem:
            raise SettingError(
                f"types: {name!r} has type {given!r}, which is no Arrow type; use such as "
                "'int64', 'float64', 'string', 'bool' or pa.timestamp('ms')"
            ) from problem
    return tuple(typed)

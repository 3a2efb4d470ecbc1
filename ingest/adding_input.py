"""An input around another that adds columns to its rows, known when they are read."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import pyarrow as pa

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.sources.around import InputAround
from slackwater.runtime.sources.spec import Input

__all__ = ["AddingInput", "with_columns"]


@dataclass(frozen=True, eq=False)
class AddingInput(InputAround):
    """An input around another that adds columns to its rows.

    Attributes:
        inner: input of the rows.
    """

    inner: Input

    word: ClassVar[str]
    """Name of the function that makes it, for errors."""

    @property
    @abstractmethod
    def added(self) -> list[pa.Field]:
        """Columns that it adds."""

    def planned(self) -> Self:
        """Return it with the files of the input fixed."""
        planned = getattr(self.inner, "planned", None)
        return self if planned is None else replace(self, inner=planned())

    def notes(self) -> list[str]:
        """Return the notes of the input."""
        notes = getattr(self.inner, "notes", None)
        return [] if notes is None else list(notes())

    def schema(self) -> pa.Schema:
        """Return the input's columns, then the added ones.

        Raises:
            SchemaError: the input has a column of such a name.
        """
        columns = self.inner.schema()
        for field in self.added:
            if field.name in columns.names:
                raise SchemaError(
                    f"{self.word}: its input has a column {field.name!r} of its own, which "
                    f"{self.word} would add; omit {self.word}, or rename that column"
                )
            columns = columns.append(field)
        return columns

    def reads_at(self, place: str, *, kind: str, is_file: bool) -> str | None:
        """Return the path that the input reads of a sink's place; None if none."""
        reads_at = getattr(self.inner, "reads_at", None)
        path: str | None = reads_at and reads_at(place, kind=kind, is_file=is_file)
        return path


def with_columns(rows: pa.RecordBatch, added: list[pa.Field], values: list[Any]) -> pa.RecordBatch:
    """Return rows with columns of one value each."""
    schema, columns = rows.schema, list(rows.columns)
    for field, value in zip(added, values, strict=True):
        schema = schema.append(field)
        columns.append(pa.repeat(pa.scalar(value, field.type), len(rows)))
    return pa.RecordBatch.from_arrays(columns, schema=schema)

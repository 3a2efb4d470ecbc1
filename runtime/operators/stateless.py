"""Steps that look at each row alone: filter, assign, select, map."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

import numpy as np

from runtime.errors import OperatorError
from runtime.model import Batch, Column, Columns
from runtime.operators.fit import fitted
from runtime.operators.user_code import called, evaluated, rows_of, sample_of
from runtime.plan.steps import AssignStep, FilterStep, MapBatchesStep, MapRowsStep, SelectStep


class PassMachine:
    """Lets rows through as they are: the step that late rows enter by."""

    def apply(self, batch: Batch) -> Batch:
        """Return all rows."""
        return batch


class FilterMachine:
    """Keeps the rows where the predicate is true."""

    def __init__(self, step: FilterStep) -> None:
        self._name = step.name
        self._predicate = step.predicate
        self._nothing: Batch | None = None  # the batch of no rows, made when first needed

    def apply(self, batch: Batch) -> Batch:
        """Return the rows that remain, in order."""
        mask = evaluated(self._predicate, batch, step=self._name)
        rows = mask.nonzero()[0]
        if len(rows) == 0:  # what most batches come to where few rows pass, and batches are small
            if self._nothing is None:
                self._nothing = batch.take(rows)
            return self._nothing
        return batch if len(rows) == len(mask) else batch.take(rows)


class AssignMachine:
    """Adds or replaces columns, each computed from the row as it came in."""

    def __init__(self, step: AssignStep) -> None:
        self._step = step
        self._assigned = [
            (name, expression, step.schema.field(name).type)
            for name, expression in step.columns.items()
        ]

    def apply(self, batch: Batch) -> Batch:
        """Return all rows with the columns assigned."""
        columns = dict(batch.columns)
        for name, expression, leaves_as in self._assigned:
            values = evaluated(expression, batch, step=self._step.name, column=name)
            columns[name] = fitted(values, leaves_as, name=name, step=self._step.name)
        return batch.with_columns(columns)


class SelectMachine:
    """Keeps some columns, perhaps under new names."""

    def __init__(self, step: SelectStep) -> None:
        self._names = dict(step.columns)

    def apply(self, batch: Batch) -> Batch:
        """Return all rows with the columns selected."""
        had = batch.columns
        return batch.with_columns({new: had[old] for new, old in self._names.items()})


class MapBatchesMachine:
    """Calls the user's function with columns; it returns columns, as many rows.

    The arrays it is given are read-only: other steps may see the same ones.
    """

    def __init__(self, step: MapBatchesStep) -> None:
        self._step = step

    def apply(self, batch: Batch) -> Batch:
        """Return all rows with the columns that the function returned."""
        given = {name: _read_only(column) for name, column in batch.columns.items()}
        returned = called(self._step.function, given, step=self._step.name, batch=batch)
        self._check(returned, batch)
        columns: Columns = {
            field.name: fitted(
                returned[field.name], field.type, name=field.name, step=self._step.name, rows=batch
            )
            for field in self._step.schema
        }
        return batch.with_columns(columns)

    def _check(self, returned: object, batch: Batch) -> None:
        names = self._step.schema.names
        if not isinstance(returned, Mapping):
            raise OperatorError(
                f"step {self._step.name!r}: its function returned a {type(returned).__name__}; "
                f"it must return a dict of columns: {', '.join(names)}\n{sample_of(batch)}"
            )
        _check_names(returned, names, step=self._step.name, batch=batch)
        for name in names:
            values = returned[name]
            if not isinstance(values, Sized) or isinstance(values, str) or _is_scalar(values):
                raise OperatorError(
                    f"step {self._step.name!r}: its function returned {values!r} as column "
                    f"{name!r}; a column is an array with one value for each row, such as "
                    f"np.full(rows, value)\n{sample_of(batch)}"
                )
            if len(values) != len(batch):
                raise OperatorError(
                    f"step {self._step.name!r}: its function returned {len(values)} values in "
                    f"column {name!r} for {len(batch)} rows; it must return one for each row "
                    f"(drop rows with filter)\n{sample_of(batch)}"
                )


class MapRowsMachine:
    """Calls the user's function with each row, a dict; it returns a row, or None to drop it."""

    def __init__(self, step: MapRowsStep) -> None:
        self._step = step

    def apply(self, batch: Batch) -> Batch:
        """Return the rows that the function returned, in order."""
        step, names = self._step, self._step.schema.names
        kept: list[int] = []
        made: list[Mapping[str, Any]] = []
        for place, row in enumerate(rows_of(batch)):
            only = batch.slice(place, place + 1)
            returned = called(step.function, row, step=step.name, batch=only)
            if returned is None:
                continue
            if not isinstance(returned, Mapping):
                raise OperatorError(
                    f"step {step.name!r}: its function returned a {type(returned).__name__}; it "
                    f"must return a dict of {', '.join(names)}, or None\n{sample_of(only)}"
                )
            _check_names(returned, names, step=step.name, batch=only)
            kept.append(place)
            made.append(returned)
        rows = batch.take(np.array(kept, dtype=np.int64))
        columns: Columns = {
            field.name: fitted(
                [row[field.name] for row in made],
                field.type,
                name=field.name,
                step=step.name,
                rows=rows,
            )
            for field in step.schema
        }
        return rows.with_columns(columns)


def _check_names(returned: Mapping[str, Any], names: list[str], *, step: str, batch: Batch) -> None:
    missing = [name for name in names if name not in returned]
    extra = [str(name) for name in returned if name not in names]
    if missing or extra:
        wrong = [
            f"{what} {', '.join(which)}"
            for what, which in (("lacks", missing), ("has besides", extra))
            if which
        ]
        raise OperatorError(
            f"step {step!r}: what its function returned {' and '.join(wrong)}; its schema, "
            f"given when the step was made, is {', '.join(names)}\n{sample_of(batch)}"
        )


def _is_scalar(values: object) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 0


def _read_only(column: Column) -> Column:
    if isinstance(column, np.ndarray):
        column = column.view()
        column.flags.writeable = False
    return column

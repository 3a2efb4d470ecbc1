"""`map_batches`, `map_rows`, `flat_map`: a user's function of columns, or of a row at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, Sized
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import Batch, BoolArray, Column, Columns, concat_batches
from slackwater.runtime.model.copies import copied_column, copied_value
from slackwater.runtime.model.diverted import OnBad
from slackwater.runtime.model.nullable import Nullable, nulled, without_mask
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import PlainStateless
from slackwater.runtime.operators.ground.failed_rows import errors_text, failed_rows
from slackwater.runtime.operators.ground.fit import fitted_columns
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.operators.ground.user_code import (
    Units,
    called,
    check_names,
    given,
    rows_of,
    sample_of,
    units_of,
)
from slackwater.runtime.plan.step import USERS, EachRowStep, Step
from slackwater.runtime.plan.traits import StepTraits, each_row
from slackwater.runtime.shown import a_kind, shown

BatchFunction = Callable[[Columns], Columns]
"""{name: column} in, {name: column} out, same number of rows."""
RowFunction = Callable[[dict[str, Any]], dict[str, Any] | None]
"""One row in, one row (or None: filtered) out."""
RowsFunction = Callable[[dict[str, Any]], Iterable[dict[str, Any]] | None]
"""One row in, any number of rows out; None is none."""


@dataclass(frozen=True, kw_only=True)
class FunctionStep(EachRowStep):
    """Step that calls a user's function, which may read any column."""

    function: Callable[..., Any] = field(metadata=USERS)
    units: Units = ()
    """Columns that it is given in nanoseconds, with the units in which they are kept."""
    on_error: OnBad = "error"
    """Fate of rows for which the function raises."""

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return there

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"calls    {getattr(self.function, '__qualname__', repr(self.function))}"
        yield from errors_text(self.on_error)


@dataclass(frozen=True, kw_only=True)
class MapBatchesStep(FunctionStep):
    """The user's vectorised function, columns in, columns out, same rows."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        diverts, drops = self.on_error == "divert", self.on_error != "error"
        return each_row("mapbatches", runs_users_code=True, diverts=diverts, may_drop=drops)


@dataclass(frozen=True, kw_only=True)
class MapRowsStep(FunctionStep):
    """The user's function on one row at a time: slow. None filters the row."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return each_row("maprows", runs_users_code=True, diverts=self.on_error == "divert")


@dataclass(frozen=True, kw_only=True)
class FlatMapStep(FunctionStep):
    """The user's function on one row at a time, which makes any number of rows."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return each_row("flatmap", runs_users_code=True, diverts=self.on_error == "divert")


class MapBatchesMachine(PlainStateless):
    """The machine calls the user's function with columns, for as many rows.

    The arrays it is given are read-only: other steps may see the same ones.
    """

    def __init__(self, step: MapBatchesStep) -> None:
        self._step = step
        self.failed = failed_rows(step.on_error)

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        if self.failed is None:
            return self._mapped(batch)
        return self.failed.applied(self._mapped, batch, self._step.units)

    def _mapped(self, batch: Batch) -> Batch:
        batch = given(batch, self._step.units, step=self._step.name)
        columns_in = {name: _given(column) for name, column in batch.columns.items()}
        ours = tuple(columns_in.values())
        returned = called(
            self._step.function,
            columns_in,
            step=self._step.name,
            shown=partial(sample_of, batch),
            read=partial(_columns_read, ours=ours),
        )
        self._check(returned, batch)
        columns = fitted_columns(returned, self._step.schema, step=self._step.name, rows=batch)
        if (was_null := _null_floats(batch.columns)) is not None:
            columns = {name: _null_again(column, was_null) for name, column in columns.items()}
        return Batch.like(batch, columns)

    def _check(self, returned: object, batch: Batch) -> None:
        names = self._step.schema.names
        if not isinstance(returned, Mapping):
            raise OperatorError(
                f"step {self._step.name!r}: its function returned {a_kind(returned)}; "
                f"it must return a dict of columns: {', '.join(names)}\n{sample_of(batch)}"
            )
        check_names(returned, names, step=self._step.name, shown=partial(sample_of, batch))
        for name in names:
            values = returned[name]
            if not isinstance(values, Sized) or isinstance(values, str) or _is_scalar(values):
                raise OperatorError(
                    f"step {self._step.name!r}: its function returned {shown(values)} as column "
                    f"{name!r}; a column is an array with one value for each row, such as "
                    f"np.full(rows, value)\n{sample_of(batch)}"
                )
            if len(values) != len(batch):
                raise OperatorError(
                    f"step {self._step.name!r}: its function returned {len(values)} values in "
                    f"column {name!r} for {len(batch)} rows; it must return one for each row "
                    f"(drop rows with filter)\n{sample_of(batch)}"
                )


class EachRowMachine(PlainStateless):
    """A machine that calls the user's function with each row, a dict.

    What the function returned leaves with the times of the row that came.

    Attributes:
        copies: rows so far beside the first that a row gave.
    """

    copies = 0

    def __init__(self, step: FunctionStep) -> None:
        self._step = step
        self.failed = failed_rows(step.on_error)

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        if self.failed is None:
            return self._mapped(batch)
        units = self._step.units
        each = [batch.slice(place, place + 1) for place in range(len(batch))]
        done = [made for row in each if len(made := self.failed.applied(self._mapped, row, units))]
        return concat_batches(done) if done else batch.slice(0, 0)

    def _mapped(self, batch: Batch) -> Batch:
        step, names = self._step, self._step.schema.names
        batch = given(batch, step.units, step=step.name)
        places: list[int] = []
        rows_out: list[Mapping[str, Any]] = []
        for place, row in enumerate(rows_of(batch, step=step.name)):
            about = partial(sample_of, batch, place, place + 1)
            for returned in self._called(row, about):
                check_names(returned, names, step=step.name, shown=about)
                places.append(place)
                rows_out.append(returned)
        rows = batch.take(np.array(places, dtype=np.int64))
        values = {name: [row[name] for row in rows_out] for name in names}
        made = Batch.like(rows, fitted_columns(values, step.schema, step=step.name, rows=rows))
        self.copies += len(places) - len(set(places))
        return made

    @abstractmethod
    def _called(self, row: dict[str, Any], about: Callable[[], str]) -> Sequence[Mapping[str, Any]]:
        """Return the rows that the function makes of one.

        Args:
            row: columns of the row.
            about: returns the row as text, for errors.

        Raises:
            OperatorError: it raised, or returned something else.
        """


class MapRowsMachine(EachRowMachine):
    """The machine calls the user's function with each row, a dict; None drops the row."""

    def _called(self, row: dict[str, Any], about: Callable[[], str]) -> Sequence[Mapping[str, Any]]:
        step = self._step
        returned = called(step.function, row, step=step.name, shown=about, read=_row_read)
        if returned is None:
            return ()
        if not isinstance(returned, Mapping):
            raise OperatorError(
                f"step {step.name!r}: its function returned {a_kind(returned)}; it "
                f"must return a dict of {', '.join(step.schema.names)}, or None\n{about()}"
            )
        return (returned,)


class FlatMapMachine(EachRowMachine):
    """The machine calls the user's function with each row, which returns a list."""

    def _called(self, row: dict[str, Any], about: Callable[[], str]) -> Sequence[Mapping[str, Any]]:
        step = self._step
        returned = called(step.function, row, step=step.name, shown=about, read=_rows_read)
        if returned is None:
            return ()
        rows = f"dicts of {', '.join(step.schema.names)}"
        if not isinstance(returned, list):
            raise OperatorError(
                f"step {step.name!r}: its function returned {a_kind(returned)}; it must return a "
                f"list of {rows}, or None\n{about()}"
            )
        for number, each in enumerate(returned):
            if not isinstance(each, Mapping):
                raise OperatorError(
                    f"step {step.name!r}: its function returned a list whose element {number} is "
                    f"{a_kind(each)}; it must return a list of {rows}, or None\n{about()}"
                )
        return returned


class CallingFunctions(AnyStream):
    """Streams can go through a user's function."""

    @checked_call
    def map_batches(
        self,
        function: BatchFunction,
        schema: checks.Declared,
        *,
        on_error: OnBad = "error",
        name: str | None = None,
    ) -> Self:
        """Compute columns with a vectorised function: {name: column} in, {name: column} out.

        Numbers are NumPy arrays, text is an Arrow array. It returns a value for each row, in
        the same order, and only the columns of `schema` leave.

        Args:
            function: its value for a row must not depend on the other rows; must pickle.
            schema: {column: type}, such as {"kmh": "float64"}, or a pyarrow schema.
            on_error: fate of a row for which the function raises, or returns what does not fit
                `schema`: "error" ends the job; "skip" omits and counts it; "divert" sends it to
                `diverted()`. Such rows are found by halves, so a row may be seen twice.
            name: the name of the step.
        """
        return self._mapped(MapBatchesStep, function, schema, on_error=on_error, name=name)

    @checked_call
    def map_rows(
        self,
        function: RowFunction,
        schema: checks.Declared,
        *,
        on_error: OnBad = "error",
        name: str | None = None,
    ) -> Self:
        """Compute rows one at a time, the slow path.

        The function takes a dict, and returns a dict, or None to drop the row.

        Args:
            function: function of one row; must pickle.
            schema: {column: type} of the rows it returns, or a pyarrow schema.
            on_error: fate of a row for which the function raises, or returns what does not fit
                `schema`: "error" ends the job; "skip" omits and counts it; "divert" sends it to
                `diverted()`.
            name: the name of the step.
        """
        return self._mapped(MapRowsStep, function, schema, on_error=on_error, name=name)

    @checked_call
    def flat_map(
        self,
        function: RowsFunction,
        schema: checks.Declared,
        *,
        on_error: OnBad = "error",
        name: str | None = None,
    ) -> Self:
        """Compute any number of rows of each row, one at a time, the slow path.

        The function takes a dict, and returns a list of dicts, or yields them, or None.
        They leave in that order, with the event time of the row. The ledger counts the further
        rows as copied, and rows that gave none as filtered.

        Args:
            function: function of one row; must pickle.
            schema: {column: type} of the rows it returns, or a pyarrow schema.
            on_error: fate of a row for which the function raises, or returns what does not fit
                `schema`: "error" ends the job; "skip" omits and counts it; "divert" sends it to
                `diverted()`.
            name: the name of the step.
        """
        return self._mapped(FlatMapStep, function, schema, on_error=on_error, name=name)

    def _mapped(
        self,
        kind: type[FunctionStep],
        function: Callable[..., Any],
        schema: checks.Declared,
        *,
        on_error: OnBad,
        name: str | None,
    ) -> Self:
        name = self.flow.name_for("flat_map" if kind is FlatMapStep else "map", name)
        checks.function(function, step=name)
        return self._add(
            kind(
                name=name,
                inputs=self._in,
                schema=checks.declared_schema(schema, step=name),
                function=function,
                units=units_of(self.schema),
                on_error=on_error,
            )
        )


def _row_read(returned: Any) -> Any:
    """Return a copy of a row: the function may fill it again."""
    is_row = type(returned) is dict or isinstance(returned, Mapping)
    return copied_value(returned) if is_row else returned


def _rows_read(returned: Any) -> Any:
    """Return rows as a list of copies; what a generator yields is made here.

    Text and a row alone are not rows, though both can be iterated.
    """
    if isinstance(returned, str | bytes | Mapping) or not isinstance(returned, Iterable):
        return returned
    return [_row_read(row) for row in returned]


def _columns_read(returned: Any, *, ours: tuple[Any, ...]) -> Any:
    """Return columns that the function cannot fill again; `ours` are those that it was given."""
    if not isinstance(returned, Mapping):
        return returned
    return {
        name: values if any(values is own for own in ours) else _column_read(values)
        for name, values in returned.items()
    }


def _column_read(values: Any) -> Any:
    if isinstance(values, np.ndarray | pa.Array | pa.ChunkedArray):
        return copied_column(values)
    kind = type(values)
    is_known = isinstance(values, list | tuple | str | bytes | Mapping)
    if is_known or not hasattr(kind, "__len__"):
        return values
    is_array = hasattr(kind, "__array__") and not hasattr(kind, "__iter__")
    return np.array(values) if is_array else list(values)


def _is_scalar(values: object) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 0


def _given(column: Column) -> Any:
    """Return a column as the function gets it: NumPy's, or Arrow's.

    Nulls of floats are NaN, and other numbers with nulls are Arrow's. NumPy's masked arrays would
    mask 1 / 0 too, but only where another row is null.
    """
    column = without_mask(column)
    if isinstance(column, Nullable) and column.dtype.kind == "f":
        column = np.where(column.valid, column.values, column.dtype.type(np.nan))
    if isinstance(column, Nullable):
        return column.to_arrow(pa.from_numpy_dtype(column.dtype))
    return _read_only(column) if isinstance(column, np.ndarray) else column


def _null_floats(columns: Columns) -> BoolArray | None:
    """Return the rows with a null that was given as NaN; None if none."""
    masks = [
        ~column.valid
        for column in columns.values()
        if isinstance(column, Nullable) and column.dtype.kind == "f"
    ]
    return reduce(np.logical_or, masks) if masks else None


def _null_again(column: Column, was_null: BoolArray) -> Column:
    """Return a column whose NaN is null where NaN had been given for a null."""
    values = column.values if isinstance(column, Nullable) else column
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return column
    valid = ~(was_null & np.isnan(values))
    if isinstance(column, Nullable):
        valid &= column.valid
    return nulled(values, valid)


def _read_only(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    values = values.view()
    values.flags.writeable = False
    return values

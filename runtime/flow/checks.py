"""What a step may be, given the columns that reach it: checked on the call that makes it.

Each check names the step and the column, says the rule, and returns what leaves the step.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from runtime.errors import DuplicateName, FlowError, SchemaError, SettingError, TypeMismatch
from runtime.expressions.expressions import Expr, lit
from runtime.expressions.nearest import no_column
from runtime.expressions.result_types import family, type_named
from runtime.model.schema import inside_schema, inside_type
from runtime.plan.steps import Aggregate, Share, SinkSpec, Window
from runtime.sources.columns import check_source_columns
from runtime.sources.named_reader import called_by_name
from runtime.sources.spec import SourceSpec

Declared: TypeAlias = Mapping[str, str | pa.DataType] | pa.Schema
"""What a user's function returns: {column: type, or its name}."""
WINDOW_COLUMNS = ("window_start", "window_end")


def source_schema(step: str, spec: SourceSpec) -> pa.Schema:
    """Return the columns that a source sends.

    Raises:
        SchemaError: a type that does not travel, or a column that its role does not take.
        DuplicateName: two columns of one name.
        SettingError: time_unit is none of the four.
        TypeMismatch: the promise is no time.
        IngestError: the input's own `schema` raised; with the source, the class and the line.
    """
    outside = called_by_name(step, spec.input, "schema")
    if not isinstance(outside, pa.Schema):
        raise SchemaError(
            f"source {step!r}: {type(spec.input).__qualname__}.schema returned a "
            f"{type(outside).__name__}; it must return a pyarrow.Schema"
        )
    unique_columns(outside.names, step=step, way_out="rename one before it is read")
    try:
        schema = inside_schema(outside)
    except SchemaError as problem:
        raise SchemaError(f"source {step!r}: {problem}") from None
    check_source_columns(step, spec, schema, schema.names)
    if spec.time_unit not in (None, "ns", "us", "ms", "s"):
        raise SettingError(
            f"source {step!r}: time_unit={spec.time_unit!r} must be 'ns', 'us', 'ms' or 's'"
        )
    if spec.promise is not None:
        promise = expression(spec.promise, step=step, what="promise")
        kind = promise.type_in(schema, step=step)
        if not (pa.types.is_timestamp(kind) or kind == pa.int64()):
            raise TypeMismatch(
                f"source {step!r}: promise {promise} has type {kind}, and a promise is a "
                "timestamp or int64 nanoseconds; .cast('int64') it"
            )
    return schema


def expression(value: Any, *, step: str, what: str) -> Expr:
    """Return an expression, or a literal made one.

    Raises:
        TypeMismatch: neither, such as a function.
    """
    if isinstance(value, Expr):
        return value
    if callable(value):
        raise TypeMismatch(
            f"step {step!r}: {what} takes an expression such as col('speed') < 8, not the "
            f"function {getattr(value, '__name__', value)!r}; for functions there are "
            "map_batches and map_rows"
        )
    try:
        return lit(value)
    except TypeMismatch as problem:
        raise TypeMismatch(f"step {step!r}: {what}: {problem}") from None


def predicate(value: Any, schema: pa.Schema, *, step: str, what: str) -> Expr:
    """Return an expression that is true or false for each row.

    Raises:
        TypeMismatch: it is something else.
        ColumnError: it reads a column that is not there.
    """
    checked = expression(value, step=step, what=what)
    kind = checked.type_in(schema, step=step)
    if kind != pa.bool_():
        raise TypeMismatch(
            f"step {step!r}: {what} {checked} is {kind}, and must be true or false; "
            "compare it with something"
        )
    return checked


def column_type(schema: pa.Schema, column: str, *, step: str) -> pa.DataType:
    """Return a column's type.

    Raises:
        ColumnError: it is not there; names the nearest.
    """
    if not isinstance(column, str):
        raise TypeMismatch(f"step {step!r}: {column!r} is not a column's name; write it as text")
    if column not in schema.names:
        raise no_column(column, schema.names, step=step)
    return schema.field(column).type


def unique_columns(names: Iterable[str], *, step: str, way_out: str) -> None:
    """Check that no column comes twice.

    Raises:
        DuplicateName: one does.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DuplicateName(f"step {step!r}: two columns are named {name!r}; {way_out}")
        seen.add(name)


def key_types(schema: pa.Schema, keys: Sequence[str], *, step: str) -> list[pa.DataType]:
    """Return the types of key columns: text, integers or booleans.

    Raises:
        ColumnError, DuplicateName, TypeMismatch: a key is not there, comes twice, is a float.
    """
    unique_columns(keys, step=step, way_out="name each key once")
    types = [column_type(schema, key, step=step) for key in keys]
    for key, kind in zip(keys, types, strict=True):
        if not (_is_whole(kind) or family(kind) in ("text", "bool")):
            raise TypeMismatch(
                f"step {step!r}: key {key!r} is {kind}, and keys are text, integers or "
                "booleans; cast it, such as .assign(key=col(...).cast('int64'))"
            )
    return types


def merged_schema(inputs: Mapping[str, pa.Schema], *, step: str) -> pa.Schema:
    """Return the schema that all inputs ({name: schema}) share, columns in the first one's order.

    Raises:
        FlowError: they differ; names the column and both inputs.
    """
    (first, schema), *others = inputs.items()
    for name, other in others:
        for column in dict.fromkeys([*schema.names, *other.names]):
            kinds = [
                str(each.field(column).type) if column in each.names else "missing"
                for each in (schema, other)
            ]
            if kinds[0] != kinds[1]:
                raise TypeMismatch(
                    f"step {step!r}: merged streams must have the same columns, and {column!r} "
                    f"is {kinds[0]} in {first!r} and {kinds[1]} in {name!r}; "
                    "select or assign before the merge"
                )
    return schema


def joined_schema(
    left: pa.Schema,
    right: pa.Schema,
    on: tuple[Sequence[str], Sequence[str]],
    *,
    suffix: str,
    step: str,
) -> tuple[pa.Schema, dict[str, str]]:
    """Return what leaves a join, and {right column: name it leaves under}, keys apart.

    Args:
        left: columns of the left rows; they keep their names.
        right: columns of the right rows; a name that the left has too gets `suffix`.
        on: keys of the left, keys of the right, pairwise.
        suffix: for right columns.
        step: for the errors.

    Raises:
        FlowError: no keys, or not pairwise.
        ColumnError, TypeMismatch: a key is not there, or two cannot be equal.
        DuplicateName: two columns would leave under one name.
    """
    left_on, right_on = on
    if not left_on or len(left_on) != len(right_on):
        raise FlowError(
            f"step {step!r}: a join needs keys, as many on the left ({len(left_on)}) as on the "
            f"right ({len(right_on)}): on='area', or left_on= and right_on=; to pair every row "
            "with every other, assign the same literal to both sides"
        )
    pairs = zip(
        left_on,
        key_types(left, left_on, step=step),
        right_on,
        key_types(right, right_on, step=step),
        strict=True,
    )
    for left_key, left_type, right_key, right_type in pairs:
        if left_type != right_type and not (_is_whole(left_type) and _is_whole(right_type)):
            raise TypeMismatch(
                f"step {step!r}: left key {left_key!r} is {left_type} and right key "
                f"{right_key!r} is {right_type}; such values are never equal, cast one of them"
            )
    right_names = {
        name: name + suffix if name in left.names else name
        for name in right.names
        if name not in right_on
    }
    way_out = "choose another suffix=, or rename with .select(new='old') before the join"
    unique_columns([*left.names, *right_names.values()], step=step, way_out=way_out)
    fields = [pa.field(leaves, right.field(name).type) for name, leaves in right_names.items()]
    return pa.schema([*left, *fields]), right_names


def aggregated_schema(
    schema: pa.Schema, keys: Sequence[str], aggregates: Mapping[str, Aggregate], *, step: str
) -> pa.Schema:
    """Return the columns that leave: keys, window_start, window_end, aggregates.

    Raises:
        FlowError: no aggregates.
        ColumnError, TypeMismatch: a column is not there, or is no number.
        DuplicateName: an aggregate has the name of a key or of a window's end.
    """
    if not aggregates:
        raise FlowError(f"step {step!r}: there is nothing to aggregate; write n=count(), say")
    fields = [*zip(keys, key_types(schema, keys, step=step), strict=True)]
    fields += [(name, pa.timestamp("ns")) for name in WINDOW_COLUMNS]
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise TypeMismatch(
                f"step {step!r}: {name}={aggregate} is no aggregate; write count(), sum('x'), "
                "mean('x'), min('x'), max('x') or quantile('x', 0.95)"
            )
        fields.append((name, _aggregate_type(name, aggregate, schema, step)))
    names = [name for name, _ in fields]
    unique_columns(names, step=step, way_out="give the aggregate another name")
    return pa.schema(fields)


def declared_schema(columns: Declared, *, step: str) -> pa.Schema:
    """Return the schema that a user's function declares.

    Args:
        columns: {column: type}; a type of Arrow, or its name: those of `result_types.TYPES`.
            "float" and "double" have 32 and 64 bits, as in Arrow; "int" and "long" are none.
        step: for the errors.

    Raises:
        FlowError: no columns.
        DuplicateName: two columns of one name.
        TypeMismatch: no mapping; or a type that is not there, or does not travel.
    """
    if isinstance(columns, pa.Schema):
        unique_columns(columns.names, step=step, way_out="each column leaves once")
        columns = dict(zip(columns.names, columns.types, strict=True))
    if not isinstance(columns, Mapping):
        raise TypeMismatch(
            f"step {step!r}: schema={columns!r} is neither a dict such as {{'kmh': 'float64'}} "
            "nor a pyarrow schema"
        )
    if not columns:
        raise FlowError(f"step {step!r}: schema= must name the columns that the function returns")
    fields = []
    for name, kind in columns.items():
        try:
            inside = inside_type(name, kind) if isinstance(kind, pa.DataType) else type_named(kind)
        except (TypeMismatch, SchemaError) as problem:
            raise TypeMismatch(f"step {step!r}: schema of {name!r}: {problem}") from None
        fields.append((name, inside))
    return pa.schema(fields)


def replicas(count: Any, share: Any, *, keys: Sequence[str], step: str) -> tuple[int, Share]:
    """Return how many replicas a step has, and what each of them gets.

    Raises:
        SettingError: not a whole number >= 1, or neither "keys" nor "all".
        FlowError: its rows cannot be shared so.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise SettingError(f"step {step!r}: replicas={count!r} must be a whole number, 1 or more")
    if share not in ("keys", "all"):
        raise SettingError(f"step {step!r}: share={share!r} must be 'keys' or 'all'")
    if count > 1 and not keys:
        raise FlowError(
            f"step {step!r}: replicas={count} share its rows by key, and it has none; "
            "give it a key, by=..., or replicas=1"
        )
    return count, share


def no_share(share: Any, *, step: str, stacklevel: int) -> None:
    """Warn of `share` at an aggregate, which goes with the next release.

    Args:
        share: as it was given; None: it was not.
        step: the aggregate.
        stacklevel: how far up the line is that the user wrote.

    Raises:
        FlowError: replicas of an aggregate cannot share so.
    """
    if share is None:
        return
    if share != "keys":
        raise FlowError(
            f"step {step!r}: share={share!r} is for joins: there each row is stored once and "
            "compared everywhere, but a window needs all rows of its key in one place; leave "
            "share away"
        )
    warnings.warn(
        f"step {step!r}: aggregate(share=...) goes with the next release; leave it away: replicas "
        "of an aggregate share by keys",
        FutureWarning,  # a DeprecationWarning in a user's file is not shown
        stacklevel=stacklevel,
    )


def together(
    first: Mapping[str, Any] | None, named: Mapping[str, Any], *, step: str
) -> dict[str, Any]:
    """Return the columns of a dict and of keywords.

    Raises:
        DuplicateName: one is in both.
    """
    columns = dict(first or {})
    for name, value in named.items():
        if name in columns:
            raise DuplicateName(f"step {step!r}: column {name!r} is given twice; give it once")
        columns[name] = value
    return columns


def function(given: Any, *, step: str) -> None:
    """Check that it can be called.

    Raises:
        TypeMismatch: it cannot.
    """
    if not callable(given):
        raise TypeMismatch(
            f"step {step!r}: {given!r} is no function; expressions go to assign and filter"
        )


def window(given: Any, *, step: str) -> None:
    """Check that it is a window.

    Raises:
        TypeMismatch: it is not.
    """
    if not isinstance(given, Window):
        raise TypeMismatch(
            f"step {step!r}: window={given!r} is no window; write tumbling('1s') or "
            "sliding('10s', '2s')"
        )


def sink(given: Any, *, step: str) -> None:
    """Check that it is a sink.

    Raises:
        TypeMismatch: it is not.
    """
    if not isinstance(given, SinkSpec):
        raise TypeMismatch(f"step {step!r}: {given!r} is no sink; write parquet_sink('out/'), say")


def _aggregate_type(name: str, aggregate: Aggregate, schema: pa.Schema, step: str) -> pa.DataType:
    if aggregate.column is None:
        return pa.int64()
    kind = column_type(schema, aggregate.column, step=step)
    if aggregate.kind == "count":
        return pa.int64()
    if family(kind) != "number":
        raise TypeMismatch(
            f"step {step!r}: {name}={aggregate.kind}({aggregate.column!r}) takes numbers, and "
            f"{aggregate.column!r} is {kind}; cast it with .assign(x=col(...).cast('int64'))"
        )
    if aggregate.kind in ("min", "max"):
        return kind
    return pa.int64() if aggregate.kind == "sum" and _is_whole(kind) else pa.float64()


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind))

"""A stream under construction: every method adds a step to its flow and returns what leaves it.

Nothing runs here. Each call checks names, columns and types at once, so an error points at
the line that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from runtime.errors import FlowError
from runtime.flow import checks
from runtime.flow.keyed import KeyedStream
from runtime.flow.slack import AS_FLOW, Slack
from runtime.flow.steps import (
    Aggregate,
    AggregateStep,
    AssignStep,
    BatchFunction,
    FilterStep,
    JoinStep,
    Keep,
    MapBatchesStep,
    MapRowsStep,
    RowFunction,
    SelectStep,
    Share,
    SinkSpec,
    SinkStep,
    Step,
    Window,
)
from runtime.model import Duration, duration_ns

if TYPE_CHECKING:
    from runtime.flow.dataflow import Dataflow
    from runtime.flow.expressions import Expr
    from runtime.flow.literals import Writable

Names = str | Sequence[str]


class Stream:
    """What leaves one step of a flow. May feed any number of steps, one of them even twice."""

    def __init__(self, flow: Dataflow, step: Step) -> None:
        self.flow = flow
        self.name = step.name
        self.schema: pa.Schema = step.schema

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.type}" for field in self.schema)
        return f"<Stream {self.name!r} ({columns})>"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.schema.names)

    def filter(self, predicate: Expr | bool, *, name: str | None = None) -> Stream:
        """Keep the rows where the predicate is true.

        Raises:
            ColumnError, TypeMismatch: it reads what is not there, or is not true or false.
        """
        name = self.flow.name_for("filter", name)
        checked = checks.predicate(predicate, self.schema, step=name, what="filter")
        return self._add(
            FilterStep(name=name, inputs=self._in, schema=self.schema, predicate=checked)
        )

    def assign(
        self,
        columns: Mapping[str, Expr | Writable] | None = None,
        *,
        name: str | None = None,
        **named: Expr | Writable,
    ) -> Stream:
        """Add or replace columns, each computed from the row as it came in.

        Args:
            columns: {column: expression}, for names that Python cannot spell.
            name: of the step.
            named: column=expression.

        Raises:
            ColumnError, TypeMismatch: an expression does not fit the columns there are.
        """
        name = self._step_name("assign", name)
        expressions = {
            column: checks.expression(value, step=name, what=column)
            for column, value in checks.together(columns, named, step=name).items()
        }
        if not expressions:
            raise FlowError(
                f"step {name!r}: there is nothing to assign; write kmh=col('mps') * 3.6"
            )
        types = {field.name: field.type for field in self.schema}
        types |= {
            column: each.type_in(self.schema, step=name) for column, each in expressions.items()
        }
        schema = pa.schema(list(types.items()))
        return self._add(AssignStep(name=name, inputs=self._in, schema=schema, columns=expressions))

    def select(
        self, *keep: str | Mapping[str, str], name: str | None = None, **renamed: str
    ) -> Stream:
        """Keep these columns only, in this order, some under new names.

        Args:
            keep: columns that keep their names, or {new name: old name}.
            name: of the step.
            renamed: new_name="old name".

        Raises:
            ColumnError: a column is not there.
            DuplicateName: two columns would have one name.
        """
        name = self._step_name("select", name)
        pairs = [
            pair
            for each in (*keep, renamed)
            for pair in (each.items() if isinstance(each, Mapping) else [(each, each)])
        ]
        checks.unique_columns(
            [new for new, _ in pairs], step=name, way_out="keep it once, or rename one"
        )
        if not pairs:
            raise FlowError(f"step {name!r}: no column would be left; name one to keep")
        schema = pa.schema(
            [(new, checks.column_type(self.schema, old, step=name)) for new, old in pairs]
        )
        return self._add(SelectStep(name=name, inputs=self._in, schema=schema, columns=dict(pairs)))

    def drop(self, *columns: str, name: str | None = None) -> Stream:
        """Keep all columns but these.

        Raises:
            ColumnError: a column is not there.
        """
        name = self._step_name("drop", name)
        for column in columns:
            checks.column_type(self.schema, column, step=name)
        return self.select(*[kept for kept in self.columns if kept not in columns], name=name)

    def map_batches(
        self,
        function: BatchFunction,
        schema: checks.Declared,
        *,
        name: str | None = None,
    ) -> Stream:
        """Compute columns with a vectorised function: {name: column} in, {name: column} out.

        Numbers are NumPy arrays, text is an Arrow array. It returns a value for each row, in
        the same order, and only the columns of `schema` leave.

        Args:
            function: must give the same for a row whatever rows come with it; must pickle.
            schema: {column: type}, such as {"kmh": "float64"}, or a pyarrow schema.
            name: of the step.
        """
        name = self.flow.name_for("map", name)
        checks.function(function, step=name)
        declared = checks.declared_schema(schema, step=name)
        return self._add(
            MapBatchesStep(name=name, inputs=self._in, schema=declared, function=function)
        )

    def map_rows(
        self,
        function: RowFunction,
        schema: checks.Declared,
        *,
        name: str | None = None,
    ) -> Stream:
        """Compute rows one at a time, the slow path: a dict in, a dict out, or None to drop it.

        Args:
            function: must pickle.
            schema: {column: type} of the rows it returns, or a pyarrow schema.
            name: of the step.
        """
        name = self.flow.name_for("map", name)
        checks.function(function, step=name)
        declared = checks.declared_schema(schema, step=name)
        return self._add(
            MapRowsStep(name=name, inputs=self._in, schema=declared, function=function)
        )

    def key_by(self, *keys: str) -> KeyedStream:
        """Say which columns tell rows apart, for the aggregate or join that follows. No step.

        Raises:
            ColumnError, TypeMismatch: a key is not there, or is neither text nor whole.
        """
        if not keys:
            raise FlowError(f"key_by on {self.name!r} needs a column, such as key_by('area')")
        checks.key_types(self.schema, keys, step=self.name)
        return KeyedStream(self, keys)

    def merge(self, *others: Stream, slack: Slack = AS_FLOW, name: str | None = None) -> Stream:
        """Put the rows of several streams into one, in event-time order; see Dataflow.merge."""
        return self.flow.merge(self, *others, slack=slack, name=name)

    def aggregate(
        self,
        columns: Mapping[str, Aggregate] | None = None,
        *,
        window: Window,
        by: Names = (),
        slack: Slack = AS_FLOW,
        replicas: int = 1,
        share: Share = "keys",
        name: str | None = None,
        **named: Aggregate,
    ) -> Stream:
        """Aggregate each key's rows in each window of event time.

        Args:
            columns: {column: aggregate}, for names that Python cannot spell.
            window: tumbling("1s") or sliding("10s", "2s").
            by: the key columns; none: all rows together.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            replicas: how many work on it, each on the rows of its keys; see `join`.
            share: "keys" only.
            name: of the step.
            named: column=aggregate, such as n=count().
        """
        name = self._step_name("aggregate", name)
        checks.window(window, step=name)
        keys = _names(by)
        aggregates = checks.together(columns, named, step=name)
        replicas, _ = checks.replicas(replicas, share, keys=keys, is_join=False, step=name)
        return self._add(
            AggregateStep(
                name=name,
                inputs=self._in,
                schema=checks.aggregated_schema(self.schema, keys, aggregates, step=name),
                keys=keys,
                window=window,
                aggregates=aggregates,
                slack_ns=self.flow.slack_of(slack, step=name),
                replicas=replicas,
            )
        )

    def join(  # noqa: PLR0913 - each option is one word of what a join means
        self,
        other: Stream,
        on: Names = (),
        *,
        within: Duration,
        left_on: Names = (),
        right_on: Names = (),
        where: Expr | None = None,
        suffix: str = "_right",
        slack: Slack = AS_FLOW,
        keep: Keep | None = None,
        replicas: int = 1,
        share: Share = "keys",
        name: str | None = None,
    ) -> Stream:
        """Pair rows of two streams with equal keys and event times at most `within` apart.

        Args:
            other: the right stream; may be this one.
            on: key columns of both; or `left_on` and `right_on`, pairwise.
            within: how far apart, "5s".
            left_on: keys of this stream.
            right_on: keys of the other; they do not leave, being equal to the left ones.
            where: what else a pair must satisfy, over the columns that leave.
            suffix: for right columns whose name the left has too.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            keep: "promise": a row stays until no partner of it can follow, so that late rows find
                all of theirs. "slack": until what was released is more than `within` past it, as
                in [ssg]; late rows may miss some. None: as the flow says.
            replicas: how many work on it, in slots of their own, behind one gate that is a
                stage of its own. 1: gate and join are one stage.
            share: "keys": each replica gets the rows of its keys. "all": each gets all rows,
                stores its share of them, and compares all with what it stores: for few keys,
                or some with most of the rows.
            name: of the step.
        """
        name = self.flow.name_for("join", name)
        self.flow.check_own(other, step=name)
        if on and (left_on or right_on):
            raise FlowError(f"step {name!r}: give on=, or left_on= and right_on=, not both")
        left_keys, right_keys = (_names(on),) * 2 if on else (_names(left_on), _names(right_on))
        schema, right_names = checks.joined_schema(
            self.schema, other.schema, (left_keys, right_keys), suffix=suffix, step=name
        )
        replicas, share = checks.replicas(replicas, share, keys=left_keys, is_join=True, step=name)
        if where is not None:
            where = checks.predicate(where, schema, step=name, what="where")
        inputs = (self.name, other.name)
        return self._add(
            JoinStep(
                name=name,
                inputs=inputs,
                schema=schema,
                left_on=left_keys,
                right_on=right_keys,
                within_ns=duration_ns(within, what=f"step {name!r}: within", positive=True),
                where=where,
                right_names=right_names,
                slack_ns=self.flow.slack_of(slack, step=name),
                keep=self.flow.keep_of(keep, inputs=inputs, step=name),
                replicas=replicas,
                share=share,
            )
        )

    def sink(self, name: str, spec: SinkSpec) -> None:
        """End here: the rows go to parquet_sink(path), jsonl_sink, callback_sink or collect_sink.

        Raises:
            DuplicateName: a step has this name already.
        """
        name = self.flow.name_for("sink", name)
        checks.sink(spec, step=name)
        self._add(SinkStep(name=name, inputs=self._in, schema=self.schema, sink=spec))

    @property
    def _in(self) -> tuple[str, ...]:
        return (self.name,)

    def _add(self, step: Step) -> Stream:
        return self.flow.add(step)

    def _step_name(self, kind: str, name: Any) -> str:
        """Return the step's name, where `name=` could have been meant for a column."""
        if name is not None and (not isinstance(name, str) or name in self.columns):
            raise FlowError(
                f"{kind} on {self.name!r}: name={name} would name the step; for a column called "
                "'name' write {'name': ...} as the first argument"
            )
        return self.flow.name_for(kind, name)


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)

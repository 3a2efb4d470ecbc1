"""`top_k`, `newest` and `oldest`: their step, and the methods that make it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.errors import DuplicateName, FlowError, SettingError, TypeMismatch
from slackwater.runtime.expressions.comparable import family
from slackwater.runtime.model import END_NS, Release
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.streams import AnyStream, Names, names_of
from slackwater.runtime.plan.event_time_type import event_time_type
from slackwater.runtime.plan.promises import Summary
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import MARKS, Replica, Replicas, Role, Sharing, StepTraits
from slackwater.runtime.shown import shown

WINDOW_COLUMNS = ("window_start", "window_end")


class SortColumn(NamedTuple):
    """Column by which rows are ranked; nulls are last either way."""

    name: str
    ascending: bool = False


@dataclass(frozen=True, kw_only=True)
class TopKStep(GatedStep):
    """The first rows of each key and window leave, by columns, then by event time.

    Without windows they leave at the end of the input, with their own event times. With windows
    they have two more columns, and the event time of an aggregate: the last moment in the window.
    """

    keys: tuple[str, ...]
    window: WindowEnds | None
    most: int
    """Rows of a key and window that leave."""
    columns: tuple[SortColumn, ...] = ()
    """Columns of the order, the first decides; ties are decided by event time."""
    newest_first: bool = False
    """Whether of equal rows the newest is first, and not the oldest."""
    rank: str | None = None
    """Column that gets the rank, from 1; None if no column does."""
    release: Release
    replicas: Replicas = None
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that missed a window."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        window = self.window
        return StepTraits(
            kind="ranking",
            role=Role.AFTER_GATE,
            reads_fields=MARKS,
            gives_fields=MARKS,
            reach_ns=0 if window is None else window.size_ns,
            release=self.release,
            port_keys=(self.keys,),
            summaries=(
                Summary(delay_ns=END_NS)
                if window is None
                else Summary(window.slide_ns, window.end_ns(0) - 1),
            ),
            makes="on its time" if window is None else "windows",
            result_delay_ns=0 if window is not None else None,
            windows_ns=None if window is None else (window.size_ns, window.slide_ns),
            misses="windows",
            sharing=Sharing.of(self.replicas),
            result_keys=self.keys,
            replica=self.replica,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        added = () if self.window is None else WINDOW_COLUMNS
        own = {*self.keys, *(column.name for column in self.columns)}
        return (needed - {self.rank, *added}) | own

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        # The rows of a key make its results.
        return (column if column in self.keys else None,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"by       {', '.join(self.keys) or 'nothing: all rows together'}"
        if self.window is None:
            yield "window   none: rows leave at the end of the input"
        else:
            yield f"window   {self.window.text}"
        order = [f"{name} {'up' if up else 'down'}" for name, up in self.columns]
        ties = "newest first" if self.newest_first else "oldest first"
        yield f"order    {', '.join([*order, ties])}"
        yield f"gives    {self.most} of each{f', {self.rank} = rank' if self.rank else ''}"


class Ranking(AnyStream):
    """Streams can be cut to the best rows of each key and window."""

    @checked_call
    def top_k(  # noqa: PLR0913 - each option is one word of what a ranking means
        self,
        of: Names,
        k: int,
        *,
        by: Names = (),
        window: WindowEnds | None = None,
        ascending: bool | Sequence[bool] = False,
        rank: str | None = None,
        slack: Slack = AS_FLOW,
        replicas: Replicas = None,
        name: str | None = None,
    ) -> Self:
        """Keep the k rows of each key and window with the greatest values.

        Of equal rows the older is greater, then the earlier in the order of the stream. Nulls
        are last, NaN before them.

        Args:
            of: columns whose values are compared; the first decides, the next where it is equal.
            k: the number of rows of each key and window.
            by: the key columns; none: all rows together.
            window: tumbling("1s"), sliding("10s", "2s") or calendar("day"). None if rows are to
                leave at the end of the input.
            ascending: whether the least values come first; one for all columns, or for each.
            rank: name of a column that gets the rank of each row, from 1; None if none does.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            replicas: the number of replicas, each with the rows of its keys; see `join`.
            name: the name of the step.

        Raises:
            FlowError: no column to compare, or the input has windows that are corrected.
            ColumnError, TypeMismatch: a column is not there, or is a list, struct or map.
            SettingError: k is not positive, or `ascending` has another length than `of`.
        """
        name = self._step_name("top_k", name)
        columns = _sort_columns(names_of(of), ascending, self.schema, step=name)
        if k < 1:
            raise SettingError(f"step {name!r}: k={k} rows of each key; write 1 or more")
        return self._best(
            name, by, window, slack, replicas, most=int(k), columns=columns, rank=rank
        )

    @checked_call
    def newest(
        self,
        by: Names = (),
        *,
        window: WindowEnds | None = None,
        slack: Slack = AS_FLOW,
        replicas: Replicas = None,
        name: str | None = None,
    ) -> Self:
        """Keep the newest row of each key and window, by event time; see `top_k`.

        Of rows of one event time the last in the order of the stream is the newest.

        Args:
            by: the key columns; none: all rows together.
            window: tumbling("1s"), sliding("10s", "2s") or calendar("day"). None if rows are to
                leave at the end of the input.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            replicas: the number of replicas, each with the rows of its keys; see `join`.
            name: the name of the step.
        """
        name = self.flow.name_for("newest", name)
        return self._best(name, by, window, slack, replicas, most=1, newest_first=True)

    @checked_call
    def oldest(
        self,
        by: Names = (),
        *,
        window: WindowEnds | None = None,
        slack: Slack = AS_FLOW,
        replicas: Replicas = None,
        name: str | None = None,
    ) -> Self:
        """Keep the oldest row of each key and window, by event time; see `top_k`.

        Of rows of one event time the first in the order of the stream is the oldest.

        Args:
            by: the key columns; none: all rows together.
            window: tumbling("1s"), sliding("10s", "2s") or calendar("day"). None if rows are to
                leave at the end of the input.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            replicas: the number of replicas, each with the rows of its keys; see `join`.
            name: the name of the step.
        """
        name = self.flow.name_for("oldest", name)
        return self._best(name, by, window, slack, replicas, most=1)

    def _best(
        self,
        name: str,
        by: Names,
        window: WindowEnds | None,
        slack: Slack,
        replicas: Replicas,
        **own: Any,
    ) -> Self:
        keys = names_of(by)
        checks.key_types(self.schema, keys, step=name)
        if window is not None and not isinstance(window, WindowEnds):
            raise TypeMismatch(
                f"step {name!r}: window={shown(window)} is not a window of rows to compare; write "
                "tumbling('1s'), sliding('10s', '2s') or calendar('day'), or omit it for all rows"
            )
        time = event_time_type(self.flow.steps, self._in)
        return self._add(
            TopKStep(
                name=name,
                inputs=self._in,
                schema=_schema(self.schema, window, own.get("rank"), time=time, step=name),
                keys=keys,
                window=window,
                **own,
                **self._gate(slack, replicas, keys, step=name),
            )
        )


def _sort_columns(
    names: tuple[str, ...], ascending: bool | Sequence[bool], schema: pa.Schema, *, step: str
) -> tuple[SortColumn, ...]:
    if not names:
        raise FlowError(f"step {step!r}: top_k compares no column; name one, top_k('price', 3)")
    checks.unique_columns(names, step=step, way_out="name each column once")
    for column in names:
        kind = checks.column_type(schema, column, step=step)
        if family(kind) == "nested":
            raise TypeMismatch(
                f"step {step!r}: column {column!r} is {kind}, and lists, structs and maps have no "
                "order; compare what is in it"
            )
    up = [ascending] * len(names) if isinstance(ascending, bool) else [*ascending]
    if len(up) != len(names):
        raise SettingError(
            f"step {step!r}: ascending={shown(ascending)} has {len(up)} values for {len(names)} "
            "columns; give one for all, or one for each"
        )
    return tuple(SortColumn(column, bool(each)) for column, each in zip(names, up, strict=True))


def _schema(
    schema: pa.Schema, window: WindowEnds | None, rank: str | None, *, time: pa.DataType, step: str
) -> pa.Schema:
    """Return the columns that came, then bounds of the window, then the rank.

    Bounds take the place of those of an earlier window.
    """
    types = {field.name: field.type for field in schema}
    for column in WINDOW_COLUMNS if window is not None else ():
        if types.setdefault(column, time) != time:
            raise DuplicateName(
                f"step {step!r}: column {column!r} is {types[column]}, and results have the bounds "
                "of their window there; .rename it before"
            )
    if rank is not None:
        if rank in types:
            raise DuplicateName(
                f"step {step!r}: rank={rank!r} is a column already; give the rank another name"
            )
        types[rank] = pa.int64()
    return pa.schema(list(types.items()))

"""`silence`: its step, and the method that makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import DuplicateName, FlowError, SettingError, TypeMismatch
from slackwater.runtime.model import Duration, Release, duration_ns, format_ns
from slackwater.runtime.model.exact_casts import cast_exactly
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.streams import AnyStream, Names, names_of
from slackwater.runtime.plan.event_time_type import event_time_type
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import Replica, Replicas, Role, Sharing, StepTraits
from slackwater.runtime.shown import shown, text_of

SILENT_SINCE = "silent_since"
"""Column with the event time of the last row of a key; null if none has come."""


@dataclass(frozen=True, kw_only=True)
class SilenceStep(GatedStep):
    """A row leaves for each silence of a key that lasts longer than `after`.

    Columns that leave: the keys, and `silent_since`. Its event time is the moment at which the
    silence has lasted so long.
    """

    keys: tuple[str, ...]
    after_ns: int
    awaited: tuple[tuple[Any, ...], ...] = ()
    """Keys that are awaited from the first row of the stream on."""
    release: Release
    replicas: Replicas = None
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that came too late to end a silence."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="silence",
            role=Role.AFTER_GATE,
            reach_ns=self.after_ns,
            release=self.release,
            port_keys=(self.keys,),
            makes="on its time",
            result_delay_ns=self.after_ns,
            misses="the silence that they would have ended",
            sharing=Sharing.of(self.replicas),
            result_keys=self.keys,
            replica=self.replica,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return set(self.keys)

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        # The rows of a key make its silences. Not where keys are awaited from any first row on.
        return (column if column in self.keys and not self.awaited else None,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"by       {', '.join(self.keys)}"
        yield f"after    {format_ns(self.after_ns)} without a row; at the end of the input, all"
        if self.awaited:
            yield f"awaits   {len(self.awaited):,} keys, from the first row on"


class Watching(AnyStream):
    """Streams can have rows for keys from which nothing comes."""

    @checked_call
    def silence(
        self,
        by: Names,
        *,
        after: Duration,
        keys: Sequence[Any] | None = None,
        slack: Slack = AS_FLOW,
        replicas: Replicas = None,
        name: str | None = None,
    ) -> Self:
        """Make a row for each key from which nothing came for a given event time.

        It leaves once for each silence; the key is watched again when a row of it comes. At the end
        of the input all keys fall silent. It has the key columns and `silent_since`, the event time
        of the key's last row; its own event time is that plus `after`.

        Args:
            by: names of the key columns.
            after: length of the silence, "5m". A row exactly so much later ends it in time.
            keys: keys that are awaited from the first row of the stream on, of which no row need
                come: values, or tuples of values if `by` has several columns. Others are watched,
                too. None if each key is to be watched from its first row on.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            replicas: the number of replicas, each with the rows of its keys; see `join`.
            name: the name of the step.

        Raises:
            FlowError: no key, or `keys` beside several replicas.
            ColumnError, TypeMismatch: a key column is not there, or a key is not of its type.
            SettingError: `after` is not a length of time.
        """
        name = self.flow.name_for("silence", name)
        columns = names_of(by)
        if not columns:
            raise FlowError(f"step {name!r}: silence has no key; name one, such as by='id'")
        types = dict(zip(columns, checks.key_types(self.schema, columns, step=name), strict=True))
        if SILENT_SINCE in types:
            raise DuplicateName(
                f"step {name!r}: key {SILENT_SINCE!r} has the name of a column that results have; "
                ".rename it before"
            )
        awaited = _awaited(keys, [self.schema.field(key) for key in columns], step=name)
        if awaited and replicas not in (None, 1):
            raise FlowError(
                f"step {name!r}: keys= are awaited from the first row of the stream on, which no "
                "single replica knows; omit replicas= or keys="
            )
        time = event_time_type(self.flow.steps, self._in)
        fields = [self.schema.field(key) for key in columns]
        return self._add(
            SilenceStep(
                name=name,
                inputs=self._in,
                schema=pa.schema([*fields, (SILENT_SINCE, time)]),
                keys=columns,
                after_ns=duration_ns(after, what=f"step {name!r}: after", positive=True),
                awaited=awaited,
                **self._gate(slack, replicas, columns, step=name),
            )
        )


def _awaited(
    keys: Sequence[Any] | None, fields: Sequence[pa.Field], *, step: str
) -> tuple[tuple[Any, ...], ...]:
    """Return keys as tuples.

    Raises:
        SettingError: no keys, or one has another number of values than there are columns.
        TypeMismatch: a value is not of the type of its column, or would change in it.
    """
    if keys is None:
        return ()
    several = len(fields) > 1
    rows = [tuple(key) if several and isinstance(key, list | tuple) else (key,) for key in keys]
    if wrong := [row for row in rows if len(row) != len(fields)]:
        raise SettingError(
            f"step {step!r}: keys= has {shown(wrong[0])}; write a tuple of {len(fields)} values "
            "for each key"
        )
    if not rows:
        raise SettingError(f"step {step!r}: keys={shown(keys)} names no key; write a list of some")
    for place, field in enumerate(fields):
        try:
            _check_exact([row[place] for row in rows], field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
            raise TypeMismatch(
                f"step {step!r}: keys= does not fit column {field.name!r}, which is {field.type}: "
                f"{text_of(problem)}; write values of that type"
            ) from None
    return tuple(dict.fromkeys(rows))


def _check_exact(values: list[Any], kind: pa.DataType) -> None:
    """Check that a column holds values unchanged; floats may become narrower ones.

    Raises:
        ArrowException, TypeError, ValueError, OverflowError: it does not.
    """
    pa.array(values, kind)
    for value in values:
        try:
            cast_exactly(pa.array([value]), kind)
        except (pa.ArrowNotImplementedError, OverflowError):  # it makes some that it casts not
            continue
        except pa.ArrowInvalid:
            raise ValueError(f"{shown(value)} would change in it") from None

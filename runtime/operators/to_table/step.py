"""`to_table`: its step, and the method that makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError
from slackwater.runtime.model import Duration, Release, format_ns
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.streams import AnyStream, Names, names_of
from slackwater.runtime.operators.ground.untouched import changes_of_keys, keep_length_ns
from slackwater.runtime.plan.changes import carried_by
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import MARKS, Replica, Replicas, Role, Sharing, StepTraits

OnMissing = Literal["error", "count"]
"""Fate of a row that takes out one that is not there."""


@dataclass(frozen=True, kw_only=True)
class ToTableStep(GatedStep):
    """The newest row of each key leaves: an insert first, then updates."""

    keys: tuple[str, ...]
    retracts: bool = False
    """Whether rows of the input are taken back."""
    on_missing: OnMissing = "error"
    keep_ns: int | None = None
    """Least time that a key stays after its newest row; None if all stay to the end."""
    release: Release
    replicas: Replicas = None
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that came too late."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="to_table",
            role=Role.AFTER_GATE,
            changes="retractions",
            kinds=changes_of_keys(goes=self.retracts or self.keep_ns is not None),
            takes_changes="any",
            reads_fields=MARKS,
            gives_fields=MARKS,
            release=self.release,
            port_keys=(self.keys,),
            misses="their place",
            sharing=Sharing.of(self.replicas),
            result_keys=self.keys,
            replica=self.replica,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return needed | set(self.keys)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"by       {', '.join(self.keys)}"
        until = "until the end"
        if self.keep_ns is not None:
            until = f"for {format_ns(self.keep_ns)} or more: then it is deleted"
        yield f"keeps    the newest row of each key {until}; of most_kept_rows keys"


class ToTables(AnyStream):
    """Streams can become tables."""

    @checked_call
    def to_table(
        self,
        by: Names,
        *,
        keep: Duration | None = None,
        on_missing: OnMissing = "error",
        slack: Slack = AS_FLOW,
        replicas: Replicas = None,
        name: str | None = None,
    ) -> Self:
        """Make the newest row of each key a row that changes.

        The first row of a key is an insert, each later one an update. A deletion takes the row of
        its key out. Of rows of one event time the last in the order of the stream is the newest.

        Args:
            by: the key columns; nulls are equal to each other.
            keep: length of event time, "30d", that a key stays at least after its newest row. Then
                it is deleted, at the last moment before a multiple of that length, and counted as
                `forgotten_keys`, once the input has reached that. None if keys stay.
            on_missing: fate of a deletion whose key has no row: "error" ends the job, "count"
                counts it as `missing_rows`.
            slack: how long its gate waits; AS_FLOW: as the flow says. With a slack, late rows
                are dropped and counted.
            replicas: the number of replicas, each with the rows of its keys; see `join`.
            name: the name of the step.

        Raises:
            FlowError: no key.
            ColumnError, TypeMismatch: a key is not there, or is a list, struct or map.
            SettingError: `on_missing="count"`, and no row of the input goes; or `keep` is not a
                length of time.
        """
        name = self.flow.name_for("to_table", name)
        keys = names_of(by)
        if not keys:
            raise FlowError(f"step {name!r}: to_table has no key; name one, to_table('id')")
        checks.key_types(self.schema, keys, step=name)
        carried = carried_by(self.flow.steps, self.name)
        if carried.changes == "none":
            checks.none_missing(on_missing, step=name)
        return self._add(
            ToTableStep(
                name=name,
                inputs=self._in,
                schema=self.schema,
                keys=keys,
                retracts=carried.takes_back,
                on_missing=on_missing,
                keep_ns=keep_length_ns(keep, step=name),
                **self._gate(slack, replicas, keys, step=name),
            )
        )

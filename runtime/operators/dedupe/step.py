"""`dedupe`: its step, and the method that makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError
from slackwater.runtime.model import Duration, Release, duration_ns, format_ns
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.keep import silent_text
from slackwater.runtime.operators.ground.streams import AnyStream, Names, names_of
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import Replica, Replicas, Role, Sharing, StepTraits


@dataclass(frozen=True, kw_only=True)
class DedupeStep(GatedStep):
    """A dedupe drops a row if an equal one, at most `within` away, has left.

    In the order of the stream: so the first leaves, and the first that is further away again.
    """

    on: tuple[str, ...]
    within_ns: int
    release: Release
    replicas: Replicas = None
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that may equal forgotten ones."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="dedupe",
            role=Role.AFTER_GATE,
            passes_on=True,
            reach_ns=self.within_ns,
            release=self.release,
            port_keys=(self.on,),
            keep_rule="promise",  # so that a late row finds the row that it equals
            misses="the rows that they are like",
            sharing=Sharing.of(self.replicas),
            result_keys=self.on,
            replica=self.replica,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return needed | set(self.on)

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        # Rows of other keys do not matter to a row.
        return (column if column in self.on else None,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"on       {', '.join(self.on)}, within {format_ns(self.within_ns)}"

    def keeps(self, steps: Mapping[str, Step]) -> str:  # noqa: D102 - see Step
        silent = silent_text(steps, self.inputs)
        text = f"keys until all have promised more; {silent}: of most_kept_rows rows"
        return text if silent else ""


class Deduping(AnyStream):
    """Streams can do without rows that are alike."""

    @checked_call
    def dedupe(
        self,
        on: Names | None = None,
        *,
        within: Duration,
        slack: Slack = AS_FLOW,
        replicas: Replicas = None,
        name: str | None = None,
    ) -> Self:
        """Keep the first of rows with equal keys and close event times.

        The first in the order of the stream leaves; the next of its key is the first that is more
        than `within` later. The others count as filtered, and as `duplicates` in the report.

        Args:
            on: the key columns; nulls are equal to each other. None if all columns are.
            within: how far apart equal rows are dropped, "5s". A key is known until all sources
                have promised that no row so close follows.
            slack: how long its gate waits; AS_FLOW: as the flow says. With a slack, a late row
                leaves if none like it has left.
            replicas: the number of replicas, each with the rows of its keys; see `join`.
            name: the name of the step.

        Raises:
            FlowError: no key, or the input has windows that are corrected.
            ColumnError, TypeMismatch: a key is not there, or is a list, struct or map.
            SettingError: `within` is no length of time.
        """
        name = self.flow.name_for("dedupe", name)
        keys = self.columns if on is None else names_of(on)
        if not keys:
            raise FlowError(f"step {name!r}: dedupe has no key; name one, such as on='id'")
        checks.key_types(self.schema, keys, step=name)
        return self._add(
            DedupeStep(
                name=name,
                inputs=self._in,
                schema=self.schema,
                on=keys,
                within_ns=duration_ns(within, what=f"step {name!r}: within", positive=True),
                **self._gate(slack, replicas, keys, step=name),
            )
        )

"""The method `dedupe` of streams."""

from __future__ import annotations

from typing import Self

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError
from slackwater.runtime.model import Duration, duration_ns
from slackwater.runtime.operators.dedupe.machine import DedupeMachine
from slackwater.runtime.operators.dedupe.step import DedupeStep
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import Entry
from slackwater.runtime.operators.ground.streams import AnyStream, Names, names_of, refuse_revised
from slackwater.runtime.plan.slack import AS_FLOW, Slack


class Deduping(AnyStream):
    """Streams can do without rows that are alike."""

    _entry = Entry(DedupeStep, DedupeMachine)

    @checked_call
    def dedupe(
        self,
        on: Names,
        *,
        within: Duration,
        slack: Slack = AS_FLOW,
        replicas: int = 1,
        name: str | None = None,
    ) -> Self:
        """Keep the first of rows with equal keys and close event times.

        The first in the order of the stream leaves; the next of its key is the first that is more
        than `within` later. The others count as filtered, and as `duplicates` in the report.

        Args:
            on: the key columns; nulls are equal to each other.
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
        keys = names_of(on)
        if not keys:
            raise FlowError(f"step {name!r}: dedupe has no key; name one, such as on='id'")
        checks.key_types(self.schema, keys, step=name)
        replicas, _ = checks.replicas(replicas, "keys", keys=keys, step=name)
        refuse_revised(self.flow, self.name, step=name)
        return self._add(
            DedupeStep(
                name=name,
                inputs=self._in,
                schema=self.schema,
                on=keys,
                within_ns=duration_ns(within, what=f"step {name!r}: within", positive=True),
                release=self.flow.release_of(slack, step=name),
                replicas=replicas,
            )
        )

"""The method `join` of streams."""

from __future__ import annotations

from typing import Self

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Duration, duration_ns
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import Entry
from slackwater.runtime.operators.ground.drift import DriftGiven, checked_drift
from slackwater.runtime.operators.ground.streams import (
    AnyStream,
    Names,
    check_own,
    names_of,
    refuse_revised,
)
from slackwater.runtime.operators.join.schema import joined_schema, judged
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.operators.join.uncertain import join_machine
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.traits import Keep, Share


class Joining(AnyStream):
    """Streams can be joined."""

    _entry = Entry(JoinStep, join_machine)

    @checked_call
    def join(  # noqa: PLR0913 - each option is one word of what a join means
        self,
        other: Self,
        on: Names = (),
        *,
        within: Duration,
        left_on: Names = (),
        right_on: Names = (),
        where: Expr | None = None,
        drift: DriftGiven = None,
        suffix: str = "_right",
        slack: Slack = AS_FLOW,
        keep: Keep | None = None,
        replicas: int = 1,
        share: Share = "keys",
        name: str | None = None,
    ) -> Self:
        """Pair rows of two streams with equal keys and event times at most `within` apart.

        Args:
            other: the right stream; may be this one.
            on: key columns of both; or `left_on` and `right_on`, pairwise.
            within: longest distance of partners, "5s".
            left_on: keys of this stream.
            right_on: keys of the other; they do not leave, being equal to the left ones.
            where: a further condition on pairs, over the columns that leave.
            drift: how far an event's time may be off, either way: "5ms", or the name of a column
                that both streams have, with each event's own bound in whole nanoseconds (see
                `clock_bound`). A pair that may be at most `within` apart leaves, with a column
                `certain`: whether it surely is. A pair that is not is also marked `uncertain`, and
                sinks count those. At most half of `within`. Source: [thesis] §3.2.3, §6.2.
            suffix: suffix of right columns whose name the left has too.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            keep: "promise": a row stays until no partner of it can follow, so that late rows find
                all of theirs. "slack": until what was released is more than `within` past it, as
                in [ssg]; late rows may miss some. None: as the flow says.
            replicas: the number of replicas, in slots of their own, after one gate that is a
                stage of its own. 1: gate and join are one stage. The rows are the same for any
                number of them; a sink gets them in an order that differs from run to run, unless a
                gate (`merge`) stands before it.
            share: "keys": each replica gets the rows of its keys. "all": each gets all rows,
                stores its share of them, and compares all with what it stores: for few keys,
                or if a few keys have most of the rows.
            name: the name of the step.
        """
        name = self.flow.name_for("join", name)
        check_own(self.flow, other, step=name)
        refuse_revised(self.flow, self.name, other.name, step=name)
        both, left_keys, right_keys = map(names_of, (on, left_on, right_on))
        if both and (left_keys or right_keys):
            raise FlowError(f"step {name!r}: give on=, or left_on= and right_on=, not both")
        if both:
            left_keys = right_keys = both
        schema, right_names = joined_schema(
            self.schema, other.schema, (left_keys, right_keys), suffix=suffix, step=name
        )
        replicas, share = checks.replicas(replicas, share, keys=left_keys, step=name)
        if where is not None:
            where = checks.predicate(where, schema, step=name, what="where")
        within_ns = duration_ns(within, what=f"step {name!r}: within", positive=True)
        schemas = [self.schema, other.schema]
        allowed = checked_drift(drift, schemas, span_ns=within_ns, span="within=", step=name)
        inputs = (self.name, other.name)
        return self._add(
            JoinStep(
                name=name,
                inputs=inputs,
                schema=judged(schema, allowed, step=name),
                left_on=left_keys,
                right_on=right_keys,
                within_ns=within_ns,
                where=where,
                drift=allowed,
                right_names=right_names,
                release=self.flow.release_of(slack, step=name),
                keep=self.flow.keep_of(keep, inputs=inputs),
                replicas=replicas,
                share=share,
            )
        )

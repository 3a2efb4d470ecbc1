"""`process`: the step of a custom operator, and the method that makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError, OperatorError, TypeMismatch
from slackwater.runtime.model import Duration, Release, duration_ns, format_ns
from slackwater.runtime.model.diverted import OnBad
from slackwater.runtime.model.whose_code import raised, where_raised
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.failed_rows import errors_text
from slackwater.runtime.operators.ground.streams import AnyStream, Names, names_of
from slackwater.runtime.operators.ground.user_code import Units, units_of
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.step import USERS, GatedStep, Step
from slackwater.runtime.plan.traits import Replica, Replicas, Role, Sharing, StepTraits
from slackwater.runtime.shown import shown, text_of


@dataclass(frozen=True, kw_only=True)
class ProcessStep(GatedStep):
    """A user's object for each key takes the key's rows, and is called by timers."""

    keys: tuple[str, ...]
    operator: Any = field(metadata=USERS)
    """Each key begins with a copy of this object."""
    within_ns: int | None
    """How long an object is kept after the last row of its key; None: to the end."""
    release: Release
    on_error: OnBad = "error"
    """Fate of rows for which `on_rows` raises."""
    units: Units = ()
    """Columns that it is given in nanoseconds, with the units in which they are kept."""
    replicas: Replicas = None
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows whose time was done when they came."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="process",
            role=Role.AFTER_GATE,
            reach_ns=self.within_ns or 0,
            runs_users_code=True,
            release=self.release,
            port_keys=(self.keys,),
            makes="on its time",
            misses="their turn",
            sharing=Sharing.of(self.replicas),
            result_keys=None,  # its rows need not have the keys
            replica=self.replica,
            diverts=self.on_error == "divert",
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102
        # The user's object may read any column.
        return there

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"by       {', '.join(self.keys)}"
        yield f"calls    {type(self.operator).__qualname__}, for each key"
        if self.within_ns is None:
            yield "keeps    each key to the end, as many as most_kept_rows"
        else:
            until = f"until {format_ns(self.within_ns)} after its last row, and its due_ns"
            yield f"keeps    a key {until}; counts those that it forgets"
        yield from errors_text(self.on_error)


class Processing(AnyStream):
    """Streams can pass through a custom operator."""

    @checked_call
    def process(
        self,
        operator: Any,
        schema: checks.Declared,
        *,
        within: Duration | None = None,
        by: Names = (),
        on_error: OnBad = "error",
        slack: Slack = AS_FLOW,
        replicas: Replicas = None,
        name: str | None = None,
    ) -> Self:
        """Give each key a custom object, which takes the key's rows and makes others.

        It has two methods, in order of event time; each returns a list of rows, dicts of the
        columns of `schema`, or None:

        * `on_rows(key, rows)`: all rows of its key at one event time, `rows.event_time_ns`, each
          {column: value}, times as whole nanoseconds. They leave with that time.
        * `on_time(key, t)`: called at the event time that the object has set as `self.due_ns`,
          later than the time of the call in which it sets it, after `on_rows` with its key's rows
          of that time, if there are any. Called once; it may set the next.

        The object's state is in its attributes: numbers, text, lists, dicts, arrays. The same rows
        make the same calls, wherever it runs. A row that comes when its time is done is late: it is
        counted, and `.late()` has it.

        Args:
            operator: a class, made without arguments, or an object: each key begins with a copy.
            schema: {column: type} of the rows it returns, or a pyarrow schema.
            within: how long an object is kept, in event time, after the last row of its key and
                until its `due_ns`. A later row begins with a new one, and the report counts what
                was forgotten. None: each is kept to the end, up to `Limits.most_kept_rows` keys.
            by: names of the key columns.
            on_error: "error": what `on_rows` raises, or returns that does not fit `schema`, ends
                the job; "skip": the rows of that call are omitted, counted and reported, and the
                object is as it was before; "divert": the same, and they leave by `.diverted()`.
                What `on_time` raises always ends the job.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            replicas: the number of replicas, each with the rows of its keys; see `join`.
            name: the name of the step.

        Raises:
            OperatorError: the class, called without arguments, raised.
            TypeMismatch: it has no `on_rows`, or its state is not in attributes.
            FlowError: the input has windows that are corrected.
            SettingError: `within` is no length of time, or `on_error` none of the three words.
        """
        name = self.flow.name_for("process", name)
        keys = names_of(by)
        if not keys:
            raise FlowError(f"step {name!r}: process has no key; name one, such as by='id'")
        checks.key_types(self.schema, keys, step=name)
        within_ns = None
        if within is not None:
            within_ns = duration_ns(within, what=f"step {name!r}: within", positive=True)
        return self._add(
            ProcessStep(
                name=name,
                inputs=self._in,
                schema=checks.declared_schema(schema, step=name),
                keys=keys,
                operator=_object_of(operator, step=name),
                on_error=on_error,
                units=units_of(self.schema),
                within_ns=within_ns,
                **self._gate(slack, replicas, keys, step=name),
            )
        )


def _object_of(operator: Any, *, step: str) -> Any:
    """Return the object that each key begins with a copy of.

    Raises:
        OperatorError: the class, called without arguments, raised.
        TypeMismatch: the class needs arguments, or the object has no `on_rows` or no attributes.
    """
    if isinstance(operator, type):
        try:
            operator = operator()
        except Exception as problem:
            at, lines = where_raised(problem)
            if at:  # within its own code
                raise OperatorError(
                    f"step {step!r}: {operator.__qualname__}() {raised(problem)}{at}; mend it "
                    f"there\n{lines}"
                ) from problem
            raise TypeMismatch(
                f"step {step!r}: {operator.__qualname__}() could not be made without "
                f"arguments: {text_of(problem)}; make one, and give it instead"
            ) from problem
    if not callable(getattr(operator, "on_rows", None)) or not hasattr(operator, "__dict__"):
        raise TypeMismatch(
            f"step {step!r}: {shown(operator)} must be a class or an object with "
            "on_rows(key, rows), and keep what it knows in its attributes"
        )
    return operator

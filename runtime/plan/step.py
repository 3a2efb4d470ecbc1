"""A step of a dataflow: frozen settings, never state.

Sources, sinks, shared gates and late rows are in `steps.py`; an operator's step is in its own
folder, in `runtime/operators/`. The builder checks steps, and the plan places them. Facts of a step
are its traits (`traits.py`); this file has the questions whose answer depends on other steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, NamedTuple, Self

import pyarrow as pa

from slackwater.runtime.errors import FlowError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import READY_ONLY
from slackwater.runtime.model.hashes import KEY_GROUPS
from slackwater.runtime.plan.traits import Replica, Role, StepTraits

Side = Literal["left", "right"]
"""Side of a step with two ports."""
USERS: Final = {"of": "users"}
"""Metadata of a field with a user's object: only a slot may unpickle it."""

NO_LATE = (
    "step {who!r}: {of!r} is not an operator that keeps rows, so none comes too late "
    "to count there; write .late() on what join, asof, aggregate, dedupe, top_k, newest, oldest, "
    "over, to_table, silence, pattern, followed_by or process returned"
)
"""Error of a step that has no late rows."""


@dataclass(frozen=True, kw_only=True)
class Step(ABC):
    """Step of a flow: its name, its inputs' names, and the columns that leave it.

    A class must have `traits`, `reads` and `explained`; a step of another class is an error.

    Raises:
        FlowError: the class lacks one of these.
    """

    name: str
    inputs: tuple[str, ...]
    schema: pa.Schema

    def __new__(cls, *settings: object, **named: object) -> Self:
        """Return a step if its class has all required members."""
        del settings, named
        if missing := sorted(getattr(cls, "__abstractmethods__", ())):
            raise FlowError(
                f"{cls.__name__} is not a whole step yet: it does not say {', '.join(missing)}; "
                "what each means is written at Step, in runtime/plan/step.py"
            )
        return super().__new__(cls)

    @property
    @abstractmethod
    def traits(self) -> StepTraits:
        """Facts of the step; a class makes them once, in a `functools.cached_property`."""

    @abstractmethod
    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """Return the columns of an input that the step reads or passes on.

        Args:
            position: place of the input among its inputs.
            there: columns of that input.
            needed: columns needed of its own output.
        """

    @abstractmethod
    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield the step's settings as `explain` prints them, a line each.

        Args:
            steps: {name: step} of the flow.
        """

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """Return an output column's name at each input; None if the input lacks it.

        A filter on columns that the inputs have may stand before the step, at all inputs of a port,
        and at any port: the same results leave. By default inputs lack the column.
        """
        del column
        return (None,) * len(self.inputs)

    def keeps(self, steps: Mapping[str, Step]) -> str:
        """Return the line of `explain` on rows kept after the gate; "" by default."""
        del steps
        return ""

    def bare(self) -> Self:
        """Return the step without users' objects and with its traits unchanged."""
        own: dict[str, Any] = {
            field.name: None for field in fields(self) if field.metadata == USERS
        }
        if not own:
            return self
        made = replace(self, **own)
        vars(made)["traits"] = self.traits
        return made


@dataclass(frozen=True, kw_only=True)
class EachRowStep(Step):
    """Step that looks at each row alone: no state, no gate, promises pass through."""

    splits_updates: bool = False
    """Whether halves of an update may not leave together, so each leaves as a row of its own."""


@dataclass(frozen=True, kw_only=True)
class ChoosingStep(EachRowStep):
    """Step that only passes on the rows for which a predicate is true.

    So it may stand elsewhere in a flow if the same rows leave (`runtime/rewrite/`).
    """

    predicate: Expr


def filters_among(steps: Iterable[Step]) -> list[ChoosingStep]:
    """Return the filters among steps, in their order."""
    return [step for step in steps if isinstance(step, ChoosingStep)]


class PartialResults(NamedTuple):
    """Partial results of a step.

    Attributes:
        beside: step that makes them of each batch, beside the source.
        of_parts: the step as it takes them in place of rows.
        rounded: columns of results whose last bits depend on how rows are cut into batches.
    """

    beside: EachRowStep
    of_parts: GatedStep
    rounded: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class GatedStep(Step):
    """Step after a gate: rows arrive in order. Its class has a field `release`.

    Raises:
        FlowError: its traits have another release than the step.
    """

    def __post_init__(self) -> None:
        """Check that the gate is what the user wrote."""
        if self.traits.release != vars(self)["release"]:
            raise FlowError(
                f"{type(self).__name__}.traits has another release than the step {self.name!r}; "
                "give StepTraits release=self.release"
            )

    def for_slots(self, slots: int) -> Self:
        """Return the step with a replica for each slot in place of "auto"."""
        return self.with_replicas(min(slots, KEY_GROUPS)) if self.is_auto else self

    @property
    def is_auto(self) -> bool:
        """Whether `replicas="auto"` is written."""
        return vars(self).get("replicas") == "auto"

    def with_replicas(self, count: int) -> Self:
        """Return the step with `replicas=count`; its class must have that field."""
        own: dict[str, Any] = {"replicas": count}
        return replace(self, **own)

    def part(self, name: str, replica: Replica) -> Self:
        """Return one replica of the step, under that name; a shared gate is another stage."""
        own: dict[str, Any] = {"replica": replica}
        if not replica.has_gate:
            own["release"] = READY_ONLY
        return replace(self, name=name, **own)

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> Self:
        """Return the step as it runs.

        Args:
            needed: columns needed of its output. By default the step makes all columns.
            keeps_late: whether another step takes its late rows.
        """
        del needed
        own: dict[str, Any] = {"keeps_late": keeps_late}
        return replace(self, **own) if self.traits.has_late_rows else self

    def beside_source(self, schema: pa.Schema, name: str) -> PartialResults | None:
        """Return the partial results of the step; None by default.

        Args:
            schema: columns of its input, which is fed by a source alone.
            name: name of the step of partial results.
        """
        del schema, name
        return None

    def late_columns(
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        """Return the columns of late rows; by default all, of its one port.

        Args:
            inputs: schemas of the ports.
            side: the port whose rows are wanted; all ports if None.
            who: the step that asks, for the errors.

        Returns:
            For each port {column: its name at the input}; None if its rows are omitted.

        Raises:
            FlowError: no row comes too late there, or it has no sides.
        """
        if not self.traits.has_late_rows:
            raise FlowError(NO_LATE.format(who=who, of=self.name))
        if len(inputs) != 1:
            raise FlowError(
                f"{type(self).__name__} has {len(inputs)} ports and no late_columns; write it"
            )
        if side is not None:
            raise FlowError(f"step {who!r}: {self.name!r} has one input; write late()")
        return ({column: column for column in inputs[0].names},)


def stage_kind(step: Step) -> str:
    """Return the kind of the stage that a step begins, as reports show it."""
    role = step.traits.role
    if role is Role.AFTER_GATE:
        return step.traits.kind
    return Role.EACH_ROW.value if role is Role.SIDE_ROWS else role.value

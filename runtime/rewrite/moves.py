"""Rewrites that keep a flow's results: their effects and conditions.

```
ticks ─ falling ─ pairs ─ good ─ out                 good = a & b, of the left row and of the right
ticks ─ falling ─ pairs ─ good.1 ─ good.2 ─ out      split good
ticks ─ falling ┬ good.1 ┬ pairs ─ out               good.1 before pairs, good.2 before pairs
                └ good.2 ┘
ticks ─ falling ─ good.1 ═ pairs ─ out               share good.1, good.2 (if they are alike)
ticks ─ good.1 ─ falling ═ pairs ─ out               good.1 before falling
```

The rows that leave, their values and their order stay the same (where replicas feed a sink directly
they have no order to keep). A rewrite may change the work for them, the number of rows that each
stage counts, and errors: where a row is dropped before the step that could not compute it, the
error disappears. A rewrite never adds an error. Source: [mace] §IX-A, "query rewriting".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from slackwater.runtime.errors import FlowError
from slackwater.runtime.expressions.inside import (
    alike,
    conjuncts,
    never_fails,
    reads_event_time,
    reads_only_in_comparisons,
    renamed,
)
from slackwater.runtime.plan.graph import StepGraph
from slackwater.runtime.plan.step import ChoosingStep, EachRowStep, GatedStep, Step, filters_among
from slackwater.runtime.rewrite.gates import check_gate, check_orders

__all__ = [
    "Before",
    "FlowPlan",
    "Rewrite",
    "Share",
    "Split",
    "rewrites_of",
    "split_all",
    "thinkable",
]

Steps = dict[str, Step]


@dataclass(frozen=True)
class FlowPlan:
    """Steps of a flow, as written or rewritten.

    Attributes:
        graph: its steps.
        rewrites: texts of the rewrites done, in order.
        atoms: {filter: the filters of the original flow that it stands for}; a missing filter
            stands for itself.
    """

    graph: StepGraph
    rewrites: tuple[str, ...] = ()
    atoms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def atoms_of(self, step: str) -> tuple[str, ...]:
        """Return the filters of the original flow that a filter stands for."""
        return self.atoms.get(step, (step,))

    def done(self, rewrite: Rewrite) -> FlowPlan:
        """Return the plan after a rewrite.

        Raises:
            FlowError: the rewrite is not allowed here; says why.
        """
        steps, atoms = rewrite.steps(self)
        graph = replace(self.graph, steps=steps)
        check_orders(self.graph, graph, what=rewrite.text)
        return FlowPlan(graph, (*self.rewrites, rewrite.text), {**self.atoms, **atoms})


class Rewrite(Protocol):
    """Rewrite of a flow."""

    @property
    def text(self) -> str:
        """Text of the rewrite: `rewritten(flow, text)` does it."""
        ...

    @property
    def filters(self) -> tuple[str, ...]:
        """Filters that it changes."""
        ...

    @property
    def past(self) -> str:
        """Step that the filters are moved past; without one, the first filter."""
        ...

    def steps(self, plan: FlowPlan) -> tuple[Steps, dict[str, tuple[str, ...]]]:
        """Return the steps after the rewrite, and {new filter: filters it stands for}.

        Raises:
            FlowError: the rewrite would change results, or might.
        """
        ...


@dataclass(frozen=True)
class Split:
    """Split a filter by `a & b` into one by a, then one by b.

    Always allowed: the same rows pass, and b is tested on fewer rows.
    """

    filter: str

    @property
    def text(self) -> str:
        """Text such as `split late`."""
        return f"split {self.filter}"

    @property
    def filters(self) -> tuple[str, ...]:
        """Filter that is split."""
        return (self.filter,)

    @property
    def past(self) -> str:
        """The filter itself."""
        return self.filter

    def steps(self, plan: FlowPlan) -> tuple[Steps, dict[str, tuple[str, ...]]]:
        """See Rewrite."""
        there = plan.graph.steps
        whole = _filter(there, self.filter)
        predicates = conjuncts(whole.predicate)
        if len(predicates) == 1:
            raise FlowError(f"filter {self.filter!r} is by one condition: {whole.predicate!s}")
        chain: list[ChoosingStep] = []
        for number, predicate in enumerate(predicates, start=1):
            name = _free(there, f"{self.filter}.{number}")
            inputs = (chain[-1].name,) if chain else whole.inputs
            chain.append(replace(whole, name=name, inputs=inputs, predicate=predicate))
        made: Steps = {}
        for step in there.values():
            if step is whole:
                made.update({link.name: link for link in chain})
            else:
                made[step.name] = _fed(step, {whole.name: chain[-1].name})
        return made, {link.name: (link.name,) for link in chain}


@dataclass(frozen=True)
class Before:
    """Move a filter before the step that feeds it: a map, filter, join or window.

    Allowed if

    - no other step reads that step's output, late rows included;
    - the filter reads only columns that the step passes on unchanged: none that it makes; of a
      window and a dedupe only keys; and the event time only if rows keep theirs;
    - the step makes no changes: a filter after it turns updates into deletions and insertions;
    - it only compares keys that are floats: rows of −0.0 and 0.0 meet, and a filter before could
      keep some of them;
    - its condition has a value for every row, where it now sees more rows: another filter, a join
      or a window had dropped some before;
    - at a gate: it releases only ready rows, and no row can be late there, so its releases do not
      depend on which rows come; and it does not share rows by their number.

    Through a join it goes to each side that has all of its columns, through a merge to all inputs.

    Attributes:
        filter: name of the filter.
        step: the step that feeds it.
        port: number of the port from 0, to move it before one port only, if several have its
            columns; None if before all of them.
    """

    filter: str
    step: str
    port: int | None = None

    @property
    def text(self) -> str:
        """Text such as `late before jams`, or `late before jams:1` for its left side only."""
        port = "" if self.port is None else f":{self.port + 1}"
        return f"{self.filter} before {self.step}{port}"

    @property
    def filters(self) -> tuple[str, ...]:
        """Filter that is moved."""
        return (self.filter,)

    @property
    def past(self) -> str:
        """Step that it is moved before."""
        return self.step

    def steps(self, plan: FlowPlan) -> tuple[Steps, dict[str, tuple[str, ...]]]:
        """See Rewrite."""
        graph, there = plan.graph, plan.graph.steps
        moved = _filter(there, self.filter)
        step = there[moved.inputs[0]]
        if step.name != self.step:
            raise FlowError(f"filter {self.filter!r} is fed by {step.name!r}, not {self.step!r}")
        self._check(graph, moved, step)
        names = self._positions(there, moved, step)
        copies: dict[int, ChoosingStep] = {}
        for number, (position, known) in enumerate(names.items(), start=1):
            feeds = step.inputs[position]
            copies[position] = replace(
                moved,
                name=moved.name if len(names) == 1 else _free(there, f"{moved.name}.{number}"),
                inputs=(feeds,),
                schema=there[feeds].schema,
                predicate=renamed(moved.predicate, known),
            )
        inputs = [
            copies[position].name if position in copies else name
            for position, name in enumerate(step.inputs)
        ]
        made: Steps = {}
        order = list(there)
        for other in there.values():
            if other is step:
                # In the order of their inputs, so that ties after them break as before.
                for copy in sorted(copies.values(), key=lambda c: order.index(c.inputs[0])):
                    made[copy.name] = copy
                made[step.name] = replace(step, inputs=tuple(inputs))
            elif other is not moved:
                made[other.name] = _fed(other, {moved.name: step.name})
        atoms = plan.atoms_of(moved.name)
        return made, {copy.name: atoms for copy in copies.values()}

    def _check(self, graph: StepGraph, moved: ChoosingStep, step: Step) -> None:
        others = [
            other.name
            for other in graph.steps.values()
            if step.name in other.inputs and other is not moved
        ]
        if others:
            raise self._refused(f"{others[0]!r} takes what leaves {step.name!r}, too")
        if step.traits.changes in ("upserts", "retractions"):
            raise self._refused(
                f"{step.name!r} makes updates, which leave the filter as deletions and insertions"
            )
        keeps_time = step.traits.passes_on and not any(step.traits.port_keys)
        if reads_event_time(moved.predicate) and not keeps_time:
            raise self._refused(
                f"it asks event_time(), and {step.name!r} makes rows of other times"
            )
        if isinstance(step, GatedStep):
            check_gate(graph, step, who=f"filter {self.filter!r}")
        is_map = isinstance(step, EachRowStep) and not isinstance(step, ChoosingStep)
        if not is_map and not never_fails(moved.predicate, moved.schema):
            raise self._refused(
                f"{moved.predicate!s} may be refused for rows that do not reach it now; compute in "
                "floats, or leave it where it is"
            )

        keys = _float_keys(moved, step)
        if not reads_only_in_comparisons(moved.predicate, keys):
            raise self._refused(
                f"{moved.predicate!s} may tell −0.0 from 0.0 in {', '.join(keys)}, and "
                f"{step.name!r} joins rows of equal keys; compare the key alone, or leave it"
            )

    def _positions(
        self, there: Mapping[str, Step], moved: ChoosingStep, step: Step
    ) -> dict[int, dict[str, str]]:
        """Return {input: {column: its name there}} of the inputs that it moves to."""
        ports = step.traits.ports
        read = sorted(moved.predicate.columns())
        if not read:
            raise self._refused("it reads no column, so it is the same everywhere")
        known: dict[int, dict[str, str]] = {}
        for position, feeds in enumerate(step.inputs):
            names = {column: step.names_before(column)[position] for column in read}
            there_names = {column: name for column, name in names.items() if name is not None}
            if len(there_names) == len(read) and _same_types(moved, there[feeds], there_names):
                known[position] = there_names
        able = {
            port
            for port in dict.fromkeys(ports)
            if all(at in known for at, other in enumerate(ports) if other == port)
        }
        wanted = able if self.port is None else able & {self.port}
        if not wanted or (self.port is not None and len(able) == 1):
            made = [c for c in read if not any(step.names_before(c))]
            which = f"column {made[0]!r}" if made else f"columns {', '.join(read)}, of both sides"
            raise self._refused(
                f"it reads {which}, which {step.name!r} makes, changes or brings together"
                if self.port is None
                else f"input {self.port + 1} has not all of its columns, or is the only one"
            )
        return {at: known[at] for at, port in enumerate(ports) if port in wanted}

    def _refused(self, reason: str) -> FlowError:
        return FlowError(f"filter {self.filter!r} may not go before {self.step!r}: {reason}")


@dataclass(frozen=True)
class Share:
    """Merge equal filters into one, where they are all readers of a step.

    Always allowed then: each row of the step passes all of them, or none.
    """

    filters: tuple[str, ...]

    @property
    def text(self) -> str:
        """Text such as `share late.1, late.2`."""
        return f"share {', '.join(self.filters)}"

    @property
    def past(self) -> str:
        """First of the filters."""
        return self.filters[0]

    def steps(self, plan: FlowPlan) -> tuple[Steps, dict[str, tuple[str, ...]]]:
        """See Rewrite."""
        there = plan.graph.steps
        first, *others = [_filter(there, name) for name in self.filters]
        for other in others:
            if other.inputs != first.inputs or not alike(first.predicate, other.predicate):
                raise FlowError(
                    f"filters {first.name!r} and {other.name!r} are not alike; share filters of "
                    "one input and one condition"
                )
        feeds = first.inputs[0]
        takers = [other.name for other in there.values() if feeds in other.inputs]
        if set(takers) != set(self.filters) or not others:
            raise FlowError(
                f"filters {', '.join(map(repr, self.filters))} are not all that takes what leaves "
                f"{feeds!r}; share all of {', '.join(map(repr, takers))}"
            )
        known = {other.name: first.name for other in others}
        made = {
            other.name: _fed(other, known) for other in there.values() if other.name not in known
        }
        atoms = dict.fromkeys(atom for name in self.filters for atom in plan.atoms_of(name))
        return made, {first.name: tuple(atoms)}


def rewrites_of(
    plan: FlowPlan, *, of: Callable[[str], bool] | None = None
) -> Iterator[tuple[Rewrite, FlowPlan]]:
    """Yield each allowed rewrite of a plan, and the plan after it.

    Args:
        plan: the plan; it is not changed.
        of: (filter) -> whether rewrites of it are wanted; those of all filters if None.
    """
    for rewrite in thinkable(plan.graph.steps):
        if of is not None and not any(map(of, rewrite.filters)):
            continue
        try:
            yield rewrite, plan.done(rewrite)
        except FlowError:
            continue


def split_all(plan: FlowPlan) -> FlowPlan:
    """Return a plan in which every filter has one condition."""
    for step in filters_among(plan.graph.steps.values()):
        if len(conjuncts(step.predicate)) > 1:
            plan = plan.done(Split(step.name))
    return plan


def thinkable(steps: Mapping[str, Step]) -> Iterator[Rewrite]:
    """Yield all rewrites of existing filters, allowed or not."""
    filters = filters_among(steps.values())
    for moved in filters:
        if len(conjuncts(moved.predicate)) > 1:
            yield Split(moved.name)
        feeds = steps[moved.inputs[0]]
        yield Before(moved.name, feeds.name)
        if not feeds.traits.has_single_port:
            yield from (
                Before(moved.name, feeds.name, port) for port in sorted(set(feeds.traits.ports))
            )
        same = [each.name for each in filters if each.inputs == moved.inputs]
        if len(same) > 1 and same[0] == moved.name:
            yield Share(tuple(same))


def _float_keys(moved: ChoosingStep, step: Step) -> list[str]:
    """Return the columns of a filter that are floats, and keys of the step before."""
    keys = {name for names in step.traits.port_keys for name in names}
    return [
        column
        for column in sorted(moved.predicate.columns())
        if pa.types.is_floating(moved.schema.field(column).type)
        and not keys.isdisjoint(step.names_before(column))
    ]


def _filter(steps: Mapping[str, Step], name: str) -> ChoosingStep:
    step = steps.get(name)
    if not isinstance(step, ChoosingStep):
        known = [step.name for step in filters_among(steps.values())]
        raise FlowError(f"there is no filter {name!r}; there are: {', '.join(known) or 'none'}")
    return step


def _free(steps: Mapping[str, Step], name: str) -> str:
    if name in steps:
        raise FlowError(f"a step is named {name!r} already; rename it")
    return name


def _fed(step: Step, known: Mapping[str, str]) -> Step:
    if not any(name in known for name in step.inputs):
        return step
    return replace(step, inputs=tuple(known.get(name, name) for name in step.inputs))


def _same_types(moved: ChoosingStep, feeds: Step, names: Mapping[str, str]) -> bool:
    return all(
        moved.schema.field(column).type == feeds.schema.field(name).type
        for column, name in names.items()
    )

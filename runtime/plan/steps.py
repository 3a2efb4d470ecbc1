"""Steps without operators: sources, sinks, the gate that replicas share, late rows.

`runtime/flow/` and the operators make them, `runtime/plan/plan.py` turns them into stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.model.schema import is_read
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.order.policies import OURS
from slackwater.runtime.plan.step import USERS, GatedStep, Step
from slackwater.runtime.plan.traits import Role, StepTraits
from slackwater.runtime.shown import a_kind, shown
from slackwater.runtime.sinks.fingerprint import InputPrint
from slackwater.runtime.sinks.output import Output, OutputWriter
from slackwater.runtime.sources.input_part import InputPart
from slackwater.runtime.sources.named_reader import called_by_name
from slackwater.runtime.sources.partition_set import partitions_of
from slackwater.runtime.sources.spec import SourceSpec, missing_methods


@dataclass(frozen=True, kw_only=True)
class SourceStep(Step):
    """Step by which events enter."""

    source: SourceSpec = field(metadata=USERS)

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        spec = self.source
        return StepTraits(
            kind="source",
            role=Role.SOURCE,
            passes_on=True,
            reach_ns=spec.reorder.longest_ns + (spec.idle_ns or 0) + (spec.ahead_ns or 0),
            diverts=spec.diverts,
            gives_fields=spec.row_fields | {"arrivals"},
            # A custom order policy is users' code; a custom input has its own trait.
            runs_users_code=not isinstance(spec.reorder, OURS),
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102
        return needed

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield the source's input, times and the beginning of its replay."""
        yield f"reads    {self.source.input.describe()}"
        yield f"time     {times_text(self.source)}"
        if begins := self._begins(steps):
            yield f"begins   {begins}"
        unread = [f"{field.name} ({field.type})" for field in self.schema if not is_read(field)]
        if unread:
            yield f"not read {', '.join(unread)}: does not travel"

    def _begins(self, steps: Mapping[str, Step]) -> str:
        """Return the text of where its replay begins; "": no other source is replayed."""
        spec = self.source
        if spec.start_ns is not None:
            return f"at {spec.start}"
        sources = sources_among(steps.values())
        replayed = [step for step in sources if step.source.speed is not None]
        if spec.speed is None or len(replayed) < 2:
            return ""
        if not spec.shares_beginning:
            return "with its own first arrival" + ("" if spec.start else ", as its input is live")
        shared = [step.name for step in replayed if step.source.shares_beginning]
        return f"with the first arrival of {', '.join(shared)}" if len(shared) > 1 else ""

    def planned(self) -> SourceStep:
        """Return the source with its input as a plan fixes it.

        Raises:
            IngestError: the input cannot be read.
            SchemaError: its `planned` returned no input.
        """
        given = self.source.input
        if not callable(getattr(given, "planned", None)):
            return self
        fixed = called_by_name(self.name, given, "planned")
        if missing_methods(fixed):
            raise SchemaError(
                f"source {self.name!r}: {type(given).__qualname__}.planned returned "
                f"{a_kind(fixed)}; it must return an input, such as itself"
            )
        return replace(self, source=replace(self.source, input=fixed))

    def parts(self, most: int, known: tuple[str, ...] = ()) -> list[SourceStep]:
        """Return the source with a part of its partitions, for each of its stages.

        Args:
            most: the most stages that may read it.
            known: names of its partitions at the checkpoint that it goes on from, which stay where
                they were; if empty, those that there are.

        Returns:
            An empty list if one stage reads all.

        Raises:
            IngestError, SchemaError: the input cannot name its partitions.
        """
        if most < 2 or not self.source.traits.has_partitions:
            return []
        if not known:
            partitions = partitions_of(self.name, self.source.input)
            known = tuple(sorted(partition.name for partition in partitions))
        of = min(len(known), most)
        if of < 2:
            return []
        parts = [
            InputPart(self.source.input, index=index, of=of, known=known) for index in range(of)
        ]
        return [
            replace(
                self,
                name=Subject(self.name, index + 1).name,
                source=replace(self.source, input=part),
            )
            for index, part in enumerate(parts)
        ]

    @property
    def has_single_partition(self) -> bool:
        """Whether it is the part of a source that reads one partition, to its end."""
        part = self.source.input
        return isinstance(part, InputPart) and part.is_single

    def notes(self) -> list[str]:
        """Return notes on the input for the report, such as files not read.

        Raises:
            IngestError: the input cannot be read.
            SchemaError: its `notes` returned no list of sentences.
        """
        given = self.source.input
        if not callable(getattr(given, "notes", None)):
            return []
        notes = called_by_name(self.name, given, "notes")
        if not isinstance(notes, list | tuple) or not all(isinstance(note, str) for note in notes):
            raise SchemaError(
                f"source {self.name!r}: {type(given).__qualname__}.notes returned "
                f"{shown(notes)}; it must return a list of sentences"
            )
        return [f"source {self.name!r}: {note}" for note in notes]

    def fingerprint(self) -> InputPrint | None:
        """Return the fingerprint of its input; None if it has none.

        Raises:
            IngestError: the input cannot be read, or its `fingerprint` raised.
            SchemaError: what it returned is not a pair of texts.
        """
        given = self.source.input
        if getattr(given, "fingerprint", None) is None:
            return None
        made = called_by_name(self.name, given, "fingerprint")
        if not isinstance(made, tuple | list) or [type(part) for part in made] != [str, str]:
            raise SchemaError(
                f"source {self.name!r}: {type(given).__qualname__}.fingerprint returned "
                f"{shown(made)}; it must return two texts, a few words and a digest"
            )
        return InputPrint(*made)


@dataclass(frozen=True, kw_only=True)
class GateStep(GatedStep):
    """Gate that the replicas of a step share, made by the plan alone.

    Its rows are those of the step after it, `of`, and leave unchanged.
    """

    of: GatedStep
    release: Release

    @cached_property
    def traits(self) -> StepTraits:
        """Traits of the step after it.

        Other steps see a gate and its replicas as one step. But the gate has no machine, and makes
        no results.
        """
        of = self.of.traits
        return StepTraits(
            kind="gate",
            role=Role.SHARED_GATE,
            release=self.release,
            passes_on=of.passes_on,
            changes=of.changes,
            takes_changes=of.takes_changes,
            reach_ns=of.reach_ns,
            ports=of.ports,
            port_keys=of.port_keys,
            summaries=of.summaries,
            keep_rule=of.keep_rule,
            has_late_rows=False,
            misses=of.misses,
            sharing=of.sharing,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102
        return self.of.reads(position, there, needed)

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        return self.of.names_before(column)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield nothing: users do not write this step."""
        yield from ()

    def bare(self) -> GateStep:
        """Return the gate with the step after it bare."""
        return replace(self, of=self.of.bare())


@dataclass(frozen=True, kw_only=True)
class SideStep(Step):
    """Rows of its input that are not among its results."""

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """Return no column: the step does not take its input's results."""
        return frozenset()

    def order_text(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield the line on the order of its rows, where replicas put them aside."""
        if may_be_several(steps[self.inputs[0]]):
            yield "order    as each replica puts them aside; flow.merge(…) after it gives one order"


@dataclass(frozen=True, kw_only=True)
class DivertedStep(SideStep):
    """Rows that its input diverted, since it could not use them.

    Its columns are those of DIVERTED_SCHEMA. The event time of such a row is its own, or that of
    the newest row before it.
    """

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(kind="diverted", role=Role.SIDE_ROWS, passes_on=True)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield the rows that the step takes."""
        yield f"takes    what {self.inputs[0]} could not use"
        yield from self.order_text(steps)


@dataclass(frozen=True, kw_only=True)
class LateStep(SideStep):
    """Late rows of its input: rows that could not count there in full.

    Columns that leave: those of `columns`, then `late_step`, of two ports `late_side` ("left" or
    "right"), `late_event_time`, `late_by_ns` (how far the closed time was ahead of the row),
    `late_dropped` (false: the row missed only some of its windows), and of inputs that change
    `late_change`, as the rows themselves change no more. The event time of such a row in this
    stream is when it was found late: never older than the step's promise.
    """

    columns: tuple[Mapping[str, str] | None, ...]
    """For each port of the step {column: its name at the input}; None if its rows are omitted."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(kind="late", role=Role.SIDE_ROWS, passes_on=True)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield the rows that the step takes."""
        yield f"takes    what came too late to count in full at {self.inputs[0]}"
        yield from self.order_text(steps)


@dataclass(frozen=True, kw_only=True)
class SinkStep(Step):
    """Step by which results leave."""

    output: Output = field(metadata=USERS)
    ordered: bool = True
    """Whether rows of replicas are put into the order of keys."""
    puts_in_order: bool = False
    """In a plan: whether its gate puts rows into one order, see `StepTraits`."""
    writer: OutputWriter | None = None
    """In a plan: the writer that a stage is; None if the stage writes all rows."""

    @cached_property
    def traits(self) -> StepTraits:
        """Traits of the output, which may be a user's function or a custom output."""
        return StepTraits(
            kind="sink",
            role=Role.SINK,
            takes_changes="any",
            puts_in_order=self.puts_in_order,
            needs_rows=self.puts_in_order,
            reads_fields=self.output.traits.reads_fields,
            runs_users_code=self.output.traits.runs_users_code,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """Return all columns."""
        return there

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield the output and how it publishes rows."""
        first, *options = self.output.describe().splitlines() or [""]
        yield f"writes   {first}"
        yield from (f"         {line}" for line in options)
        if leaves_by_key(self.inputs[0], steps):
            each = self._writers_text(steps) if self.may_have_writers else ""
            yield f"order    {_ORDERED if self.ordered else _UNORDERED + each}"

    def _writers_text(self, steps: Mapping[str, Step]) -> str:
        """Return the text on its writers: one if a stage of its own feeds it."""
        consumers, name = consumers_of(steps), self.inputs[0]
        while steps[name].traits.role is Role.EACH_ROW:
            feeder = steps[name].inputs[0]
            if len(consumers[feeder]) > 1:
                return f"; one writer, as {name} is a stage apart: {feeder} feeds others, too"
            name = feeder
        return "; each replica writes its own parts"

    @property
    def may_have_writers(self) -> bool:
        """Whether each replica of the step before it writes, if there are several."""
        return not self.ordered and self.output.traits.takes_writers

    def writers(self, names: Sequence[str]) -> list[SinkStep]:
        """Return its writers, a step of each of these names."""
        return [
            replace(self, name=name, writer=OutputWriter(index, len(names)))
            for index, name in enumerate(names)
        ]


_ORDERED = "event time, hash of the key: a row waits until none of its time can follow"
_UNORDERED = "as rows come from replicas (ordered=False)"


def consumers_of(steps: Mapping[str, Step]) -> dict[str, list[Step]]:
    """Return {step: steps that take its results}."""
    consumers: dict[str, list[Step]] = {name: [] for name in steps}
    for step in steps.values():
        for name in dict.fromkeys(step.inputs):
            if not isinstance(step, SideStep):  # it uses other rows
                consumers[name].append(step)
    return consumers


def leaves_by_key(name: str, steps: Mapping[str, Step]) -> bool:
    """Whether rows of a step have the hash of a key as their writer."""
    step = steps[name]
    if step.traits.role is Role.EACH_ROW:
        return all(leaves_by_key(feeder, steps) for feeder in step.inputs)
    return step.traits.orders_keys


def may_be_several(step: Step) -> bool:
    """Whether a step has replicas, or may have them."""
    return step.traits.sharing.replicas > 1 or vars(step).get("replicas") == "auto"


def sources_among(steps: Iterable[Step]) -> list[SourceStep]:
    """Return the sources among steps, in their order."""
    return [step for step in steps if isinstance(step, SourceStep)]


def sinks_among(steps: Iterable[Step]) -> list[SinkStep]:
    """Return the sinks among steps, in their order."""
    return [step for step in steps if isinstance(step, SinkStep)]


def _partition_words(spec: SourceSpec) -> Iterator[str]:
    if spec.traits.has_partitions:
        most = spec.traits.most_open
        bound = "" if most is None else f", at most {most} open at once in each"
        yield f"a writer for each partition, in up to as many stages as slots{bound}"
    if spec.retry:
        yield f"opened again up to {spec.retry} times after it raised"


def times_text(spec: SourceSpec) -> str:
    """Return the text of a source's times: columns, promise, order."""
    words = [
        spec.time_column
        if spec.time_unit in (None, "ns")
        else f"{spec.time_column} in {spec.time_unit}"
    ]
    if spec.arrival is not None:
        words.append(f"arrives by {spec.arrival}")
    if spec.clock is not None:
        words.append(spec.clock.text)
    if spec.speed is not None:
        words.append(f"replayed at {spec.speed:g}×")
    if spec.writer is not None:
        words.append(f"a writer for each {spec.writer}")
    words += _partition_words(spec)
    if spec.sequence is not None:
        words.append(f"numbered by {spec.sequence}")
    if spec.promise is not None:
        words.append(f"promises {spec.promise!s}")
    if spec.promises_nothing:
        words.append("promises nothing before its end, so that a gate keeps all its rows")
    if spec.idle_ns is not None:
        words.append(f"idle after {format_ns(spec.idle_ns)}")
    if spec.ahead_ns is not None:
        words.append(f"held if ahead by more than {format_ns(spec.ahead_ns)}")
    if spec.on_bad != "error":
        done = "omitted" if spec.on_bad == "skip" else "diverted"
        words.append(f"rows with bad times {done}")
    words.append(spec.reorder.text)
    if spec.goes_by_clock:
        words.append("by the clock, so that results depend on it: arrival= would mend that")
    return ", ".join(words)

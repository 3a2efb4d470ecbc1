"""The builder of dataflows: what a user writes, checked call by call.

    flow = Dataflow("congestion")
    buses = flow.source("buses", parquet("buses/"), event_time="ts")
    loops = flow.source("loops", parquet("loops/"), event_time="ts")
    jams = buses.filter(col("speed") < 8).join(loops, on="cell", within="5s")
    jams.sink("jams", parquet_sink("out/"))

It holds steps (`steps.py`) and nothing else; `plan.py` takes it from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypedDict, Unpack

from runtime.errors import DuplicateName, FlowError, SettingError, TypeMismatch
from runtime.flow import checks
from runtime.flow.explain import explain_flow
from runtime.flow.expressions import Expr
from runtime.flow.graph import check_runnable, needed_columns, order_steps
from runtime.flow.keep import checked_keep, default_keep
from runtime.flow.keyed import KeyedStream
from runtime.flow.nearest import nearest
from runtime.flow.slack import AS_FLOW, AsFlow, Slack, slack_ns
from runtime.flow.steps import TUNED_NS, Keep, MergeStep, SourceStep, Step
from runtime.flow.stream import Stream
from runtime.model import Duration, duration_ns
from runtime.sources.spec import Input, OutOfOrder, SourceSpec


class SourceOptions(TypedDict, total=False):
    """What `Dataflow.source` takes beside an input; see SourceSpec."""

    event_time: str
    time_unit: Literal["ns", "us", "ms", "s"]
    arrival: str | None
    speed: float | None
    writer: str | None
    promise: Expr | None
    out_of_order: OutOfOrder
    disorder: Duration
    idle: Duration | None
    ahead: Duration | None
    max_rows: int


class Dataflow:
    """A flow under construction.

    Args:
        name: what reports call it.
        slack: of every gate that has none of its own. None: a gate releases what is ready,
            and results are complete. "500ms": it waits at most so long, in event time.
            "0s": it holds nothing.
        deadline: the latency to keep, from the arrival of an event to the end of the work on it
            ([ssg] Eq. 2, 3). Gates without a slack then wait just as long as it allows; without
            one they release only what is ready, however long that takes.
        keep: of every join that has none of its own, see Stream.join. None: "promise", or "slack"
            behind a source that promises nothing before its end.

    Raises:
        SettingError: slack or deadline is not a length of time, or keep none of the two.
    """

    def __init__(
        self,
        name: str,
        *,
        slack: Duration | None = None,
        deadline: Duration | None = None,
        keep: Keep | None = None,
    ) -> None:
        self.name = _checked_name(name, "a dataflow")
        self.deadline_ns = (
            None
            if deadline is None
            else duration_ns(deadline, what=f"dataflow {name!r}: deadline", positive=True)
        )
        own_ns = slack_ns(slack, who=f"dataflow {name!r}")
        is_tuned = own_ns is None and self.deadline_ns is not None
        self.slack_ns = TUNED_NS if is_tuned else own_ns
        self.keep = checked_keep(keep, who=f"dataflow {name!r}")
        self._steps: list[Step] = []

    @classmethod
    def from_steps(
        cls,
        name: str,
        steps: Iterable[Step],
        *,
        slack: Duration | None = None,
        deadline: Duration | None = None,
    ) -> Dataflow:
        """Return a flow of steps made elsewhere, in any order.

        Raises:
            DuplicateName, FlowError, CycleError: two of one name, an input that is not there,
                a step that feeds itself.
        """
        flow = cls(name, slack=slack, deadline=deadline)
        flow._steps = list(order_steps(steps).values())
        return flow

    def __repr__(self) -> str:
        return f"<Dataflow {self.name!r}: {', '.join(step.name for step in self._steps)}>"

    def source(
        self, name: str, source: SourceSpec | Input, **options: Unpack[SourceOptions]
    ) -> Stream:
        """Let events in.

        Args:
            name: of the source.
            source: its settings, or an input and its settings as options.
            options: as in SourceSpec; `disorder` is its disorder_ns, written "500ms", and
                `idle` and `ahead` its idle_ns and ahead_ns. A `promise` that is an integer is in
                nanoseconds, whatever `time_unit` says.

        Raises:
            SchemaError, TypeMismatch: a column is not there, or its role does not take its type.
            SettingError: an option is out of range.
        """
        name = self.name_for("source", name)
        if not isinstance(source, SourceSpec):
            source = _spec(name, source, dict(options))
        elif options:
            raise FlowError(
                f"source {name!r}: {', '.join(options)} would change a SourceSpec; "
                "set it there, or pass the input alone"
            )
        schema = checks.source_schema(name, source)
        return self.add(SourceStep(name=name, inputs=(), schema=schema, source=source))

    def merge(self, *streams: Stream, slack: Slack = AS_FLOW, name: str | None = None) -> Stream:
        """Put the rows of streams with the same columns into one, in event-time order.

        Raises:
            TypeMismatch: the columns differ; says which one.
            FlowError: no streams, or a stream of another flow.
        """
        name = self.name_for("merge", name)
        if not streams:
            raise FlowError(f"step {name!r}: there is nothing to merge")
        for stream in streams:
            self.check_own(stream, step=name)
        schemas = {stream.name: stream.schema for stream in streams}
        return self.add(
            MergeStep(
                name=name,
                inputs=tuple(stream.name for stream in streams),
                schema=checks.merged_schema(schemas, step=name),
                slack_ns=self.slack_of(slack, step=name),
            )
        )

    @property
    def steps(self) -> dict[str, Step]:
        """{name: step}, each behind its inputs."""
        return order_steps(self._steps)

    def check(self) -> None:
        """Check that the flow can run.

        Raises:
            FlowError: no source, no sink, or a step that feeds nothing.
            DuplicateName, CycleError: the steps make no flow.
        """
        check_runnable(self.name, self.steps)

    def explain(self) -> str:
        """Return the graph as text: each step with its inputs, settings and columns.

        Raises:
            DuplicateName, CycleError: the steps make no flow.
        """
        return explain_flow(self)

    def needed_columns(self) -> dict[str, frozenset[str]]:
        """Return {step: the columns of its output that the steps behind it read}."""
        return needed_columns(self.steps)

    def add(self, step: Step) -> Stream:
        """Add a step whose inputs are there, and return what leaves it."""
        self._steps.append(step)
        return Stream(self, step)

    def name_for(self, kind: str, name: str | None) -> str:
        """Return the name of a new step: the user's, or the first free `kind-number`.

        Raises:
            DuplicateName: another step has it.
        """
        taken = {step.name for step in self._steps}
        if name is None:
            return next(
                free
                for number in range(1, len(taken) + 2)
                if (free := f"{kind}-{number}") not in taken
            )
        if _checked_name(name, f"a {kind}") in taken:
            raise DuplicateName(
                f"dataflow {self.name!r} has a step {name!r} already; each needs its own name"
            )
        return name

    def slack_of(self, slack: Slack, *, step: str) -> int | None:
        """Return the slack of a step's gate in nanoseconds.

        Raises:
            SettingError: not a length of time.
        """
        return self.slack_ns if isinstance(slack, AsFlow) else slack_ns(slack, who=f"step {step!r}")

    def keep_of(self, keep: Any, *, inputs: Sequence[str], step: str) -> Keep:
        """Return what a join of these inputs keeps its rows by.

        Raises:
            SettingError: neither "promise" nor "slack".
        """
        written = checked_keep(keep, who=f"step {step!r}") or self.keep
        return written or default_keep({one.name: one for one in self._steps}, inputs)

    def check_own(self, stream: Any, *, step: str) -> None:
        """Check that a stream belongs to this flow.

        Raises:
            FlowError: it does not.
            TypeMismatch: it is no stream.
        """
        if isinstance(stream, KeyedStream):
            raise TypeMismatch(
                f"step {step!r}: {stream.stream.name!r} is keyed; key both streams of a join by "
                "key_by, or none; a merge takes none that is keyed"
            )
        if not isinstance(stream, Stream):
            raise TypeMismatch(f"step {step!r}: {stream!r} is no stream")
        if stream.flow is not self:
            raise FlowError(
                f"step {step!r}: stream {stream.name!r} belongs to dataflow "
                f"{stream.flow.name!r}, not to {self.name!r}; build both in one flow"
            )


def _spec(name: str, source: Input, options: dict[str, Any]) -> SourceSpec:
    unknown = [option for option in options if option not in SourceOptions.__annotations__]
    if not callable(getattr(source, "schema", None)):
        raise TypeMismatch(f"source {name!r}: {source!r} is no input; write parquet('...'), say")
    if unknown:
        near = nearest(unknown[0], SourceOptions.__annotations__)
        raise FlowError(
            f"source {name!r}: there is no option {unknown[0]!r}; the nearest is {near!r}"
        )
    if "event_time" not in options:
        columns = ", ".join(source.schema().names)
        raise FlowError(
            f"source {name!r} needs event_time=, the column of when it happened; "
            f"there are: {columns}"
        )
    disorder_ns = duration_ns(options.pop("disorder", 0), what=f"source {name!r}: disorder")
    idle, idle_ns = options.pop("idle", None), None
    if idle is not None:
        idle_ns = duration_ns(idle, what=f"source {name!r}: idle", positive=True)
    ahead, ahead_ns = options.pop("ahead", None), None
    if ahead is not None:
        ahead_ns = duration_ns(ahead, what=f"source {name!r}: ahead")
    try:
        return SourceSpec(
            input=source, disorder_ns=disorder_ns, idle_ns=idle_ns, ahead_ns=ahead_ns, **options
        )
    except SettingError as problem:
        raise SettingError(f"source {name!r}: {problem}") from None


def _checked_name(name: Any, what: str) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise FlowError(f"{what} cannot be named {name!r}; write a name of printable text")
    return name

"""What a dataflow consists of: frozen steps that the builder checks and the plan places.

`runtime/flow/dataflow.py` makes them, `runtime/plan/plan.py` turns them into stages, and
`runtime/operators/` turns each into a machine. They hold settings, never state.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from runtime.expressions.expressions import Expr
from runtime.model import Columns, Release
from runtime.sources.spec import SourceSpec

BatchFunction = Callable[[Columns], Columns]
"""{name: column} in, {name: column} out, same number of rows."""
RowFunction = Callable[[dict[str, Any]], dict[str, Any] | None]
"""One row in, one row (or None: filtered) out."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a flow: its name, the names of its inputs, and the columns that leave it."""

    name: str
    inputs: tuple[str, ...]
    schema: pa.Schema


@dataclass(frozen=True, kw_only=True)
class SourceStep(Step):
    """Where events enter."""

    source: SourceSpec


@dataclass(frozen=True, kw_only=True)
class FilterStep(Step):
    """Keeps the rows where the predicate is true; the others are counted as filtered."""

    predicate: Expr


@dataclass(frozen=True, kw_only=True)
class AssignStep(Step):
    """Adds or replaces columns, each computed from the row as it came in."""

    columns: Mapping[str, Expr]


@dataclass(frozen=True, kw_only=True)
class SelectStep(Step):
    """Keeps these columns, perhaps under new names: {new name: old name}."""

    columns: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class MapBatchesStep(Step):
    """The user's vectorised function, columns in, columns out, same rows."""

    function: BatchFunction


@dataclass(frozen=True, kw_only=True)
class MapRowsStep(Step):
    """The user's function on one row at a time: the slow path. None filters the row."""

    function: RowFunction


@dataclass(frozen=True, kw_only=True)
class MergeStep(Step):
    """Several streams of one schema, in event-time order."""

    release: Release


Share = Literal["keys", "all"]
"""What each replica of a step gets: the rows of its keys; or all, of which it stores its share."""


Keep = Literal["promise", "slack"]
"""What a row is kept by, behind a gate that releases some before all older ones are there: until
nothing that it belongs with can follow, by what is promised; or by what has been released."""


@dataclass(frozen=True, kw_only=True)
class GateStep(Step):
    """The gate that the replicas of a step share; made by the plan, never written by a user.

    `keys` are the key columns of each port; `schema` and `window_ns` are those of the step behind.
    """

    keys: tuple[tuple[str, ...], ...]
    replicas: int
    share: Share
    release: Release
    window_ns: int
    keep: Keep = "slack"
    """As the step behind."""


@dataclass(frozen=True)
class Replica:
    """Which replica of its step a stage is: number `index`, from 0, of `of`."""

    index: int
    of: int
    share: Share


@dataclass(frozen=True, kw_only=True)
class JoinStep(Step):
    """Sliding-window join of two streams: pairs with equal keys, |Δ event time| ≤ within.

    The row that leaves has the left columns, then the right ones; a right column whose name
    the left has too, keys apart, gets `suffix`. Its event time is the later of the two.
    """

    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    within_ns: int
    where: Expr | None
    """Over the columns that leave."""
    right_names: Mapping[str, str]
    """{right column: name it leaves under}; the right keys are not in it."""
    release: Release
    keep: Keep = "promise"
    replicas: int = 1
    share: Share = "keys"
    replica: Replica | None = None
    """In a plan: which of several this is."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that could not count in full."""

    @property
    def window_ns(self) -> int:
        """SW of [ssg] §2.1: how long, in event time, a row stays in the operator's state."""
        return self.within_ns


AggregateName = Literal["count", "sum", "mean", "min", "max", "quantile"]


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: `quantile` of `column` at `level`, say. `count` needs no column."""

    kind: AggregateName
    column: str | None = None
    level: float | None = None


@dataclass(frozen=True)
class Window:
    """Windows [k·slide, k·slide + size) of event time, for all whole k. Tumbling: slide = size."""

    size_ns: int
    slide_ns: int

    @property
    def is_tumbling(self) -> bool:
        """Whether each event falls in one window."""
        return self.size_ns == self.slide_ns


Late = Literal["drop", "correct"]
"""What becomes of a row that comes behind the close of its window: counted, or the window's row
leaves again, as long as the frontier has not passed it."""
REVISION = "revision"
"""The column of late="correct": how often the row of a window and key had left before."""


@dataclass(frozen=True, kw_only=True)
class AggregateStep(Step):
    """Aggregates per key and window. A row leaves per key and window that had events.

    Columns that leave: the keys, `window_start` and `window_end` (timestamp[ns]), then the
    aggregates. Its event time is the window's end. Rows leave by window end, then by key in
    order of first appearance in the window's stream order.
    """

    keys: tuple[str, ...]
    window: Window
    aggregates: Mapping[str, Aggregate]
    release: Release
    replicas: int = 1
    late: Late = "drop"
    replica: Replica | None = None
    """In a plan: which of several this is; they share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that could not count in full."""

    @property
    def keep(self) -> Keep:
        """What panes are kept by: as long as they may be corrected, by what is promised."""
        return "promise" if self.late == "correct" else "slack"

    @property
    def window_ns(self) -> int:
        """SW of [ssg] §2.1: how long, in event time, a row stays in the operator's state."""
        return self.window.size_ns


@dataclass(frozen=True, kw_only=True)
class LateStep(Step):
    """The rows that could not count in full at its input, a join or an aggregate.

    Columns that leave: those of `columns`, then `late_step`, of a join `late_side` ("left" or
    "right"), `late_event_time`, `late_by_ns` (how far what was closed was ahead of it), and
    `late_dropped` (false: it missed some of its windows only). It happens, as an event of this
    stream, when it was found late: not before what the step had promised.
    """

    columns: tuple[Mapping[str, str] | None, ...]
    """For each port of the step {column: name it came under}; None: its rows are left out."""


SinkKind = Literal["parquet", "jsonl", "callback", "collect"]


@dataclass(frozen=True)
class SinkSpec:
    """Where results go. `actors/sinks/` opens it."""

    kind: SinkKind
    path: str | None = None
    function: Callable[[pa.RecordBatch], None] | None = None
    at_end: Callable[[], None] | None = None
    """Called behind the last call of `function`."""
    overwrite: bool = False
    """Replace what a manifest of ours names; otherwise results that are there are refused."""
    resume: bool = False
    """Go on behind the rows that an earlier run of the same flow has committed."""
    rows: int | None = None
    """After how many rows a part ends; None: as many as make a good file."""
    every_ns: int | None = None
    """How long a row may wait for its part to be published; None: till the part is full."""

    @property
    def is_file(self) -> bool:
        """Whether the path is one file, and not a folder of parts."""
        ending = os.path.splitext(os.path.normpath(self.path or ""))[1]
        return ending == ".parquet" if self.kind == "parquet" else bool(ending)


@dataclass(frozen=True, kw_only=True)
class SinkStep(Step):
    """Where results leave."""

    sink: SinkSpec

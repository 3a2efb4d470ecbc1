"""Models of costs, links and tuners in the simulator: seeded, in virtual time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TypeVar

import numpy as np

from slackwater.runtime.calls import checked_fields
from slackwater.runtime.control.loop import Decider
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.schedule import Slice
from slackwater.runtime.shown import shown

_T = TypeVar("_T")

_SAVED = 0.9
"""Share of a row's cost that is saved if the row is passed over."""


@checked_fields
@dataclass(frozen=True, kw_only=True)
class CostModel:
    """Cost of a slice of work, by slices, rows and comparisons, varied at random.

    Attributes:
        per_slice_ns: fixed cost of a slice, >= 0.
        per_row_ns: cost of a row, >= 0, when it is processed: when a source hands it over, or when
            it goes on to a stage's operator, which may be long after it came to the gate.
            `stages` sets it for single stages: {stage: ns}; the cost of a step is that of each of
            its replicas or source stages, here and in all other settings. A row that a pattern
            passes over under load costs a tenth of it.
        slices: the same for `per_slice_ns`: {stage: ns}.
        per_comparison_ns: cost of each pair that a join compares, or, in a pattern that sheds, of
            an event and a window that keeps it, >= 0; included in `per_row_ns` while this is 0.
        jitter: each slice takes between 1 and 1 + jitter times as long, >= 0.
        compared: the same for `per_comparison_ns`: {stage: ns}.
        results: additional cost of a row that leaves: {stage: ns}.
        load: factor on the cost of a stage's slices over time: {stage: (virtual ns) -> factor,
            >= 0}.
    """

    per_slice_ns: float = 50_000
    per_row_ns: float = 250
    stages: Mapping[str, float] = field(default_factory=dict)
    slices: Mapping[str, float] = field(default_factory=dict)
    per_comparison_ns: float = 0.0
    compared: Mapping[str, float] = field(default_factory=dict)
    results: Mapping[str, float] = field(default_factory=dict)
    jitter: float = 0.0
    load: Mapping[str, Callable[[int], float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        costs: dict[str, object] = {
            name: getattr(self, name)
            for name in ("per_slice_ns", "per_row_ns", "per_comparison_ns", "jitter")
        }
        for name in ("stages", "slices", "compared", "results"):
            costs |= {f"{name}[{stage!r}]": cost for stage, cost in getattr(self, name).items()}
        for name, cost in costs.items():
            if not (isinstance(cost, Real) and 0 <= float(cost) < math.inf):
                raise SettingError(
                    f"CostModel: {name}={shown(cost)} must be a finite number, zero or more; costs "
                    "are nanoseconds, such as 250"
                )
        for stage, factor in self.load.items():
            if not callable(factor):
                raise SettingError(
                    f"CostModel: load[{stage!r}]={shown(factor)} must be a function of the virtual "
                    f"time; write load={{{stage!r}: lambda now_ns: 3.0}}"
                )

    def for_stages(self, stages: Iterable[Stage]) -> CostModel:
        """Return the model with the settings of each step for its parts, too."""
        parts = [stage.subject for stage in stages if isinstance(stage.subject.part, int)]

        def with_parts(given: Mapping[str, _T]) -> dict[str, _T]:
            own = {part.name: given[part.step] for part in parts if part.step in given}
            return {**own, **given}

        return replace(
            self,
            stages=with_parts(self.stages),
            slices=with_parts(self.slices),
            compared=with_parts(self.compared),
            results=with_parts(self.results),
            load=with_parts(self.load),
        )

    def begin(self) -> None:
        """Do nothing: this model does not measure."""

    def slice_ns(self, done: Slice, rng: np.random.Generator, *, now_ns: int = 0) -> int:
        """Return the virtual time of a slice that begins now."""
        return sum(self._part_ns(part, rng, now_ns=now_ns) for part in done.parts)

    def _part_ns(self, done: Slice, rng: np.random.Generator, *, now_ns: int) -> int:
        if done.has_read:  # a row's cost includes its reading
            return 0
        stage = done.stage
        cost = self.slices.get(stage, self.per_slice_ns)
        rows = done.released - _SAVED * (done.passed_over or 0)
        cost += rows * self.stages.get(stage, self.per_row_ns)
        cost += done.comparisons * self.compared.get(stage, self.per_comparison_ns)
        cost += done.results * self.results.get(stage, 0.0)
        if stage in self.load:
            cost *= self.load[stage](now_ns)
        return max(1, round(cost * (1 + self.jitter * rng.random())))


@dataclass(frozen=True, slots=True)
class MeasuredSlice:
    """Measurement of a slice.

    Attributes:
        stage: the stage that ran.
        rows: rows that it took in; a message without rows counts as one.
        took_ns: time by the given clock.
        released: rows that went on to its operator; a gate may release rows in a later slice.
        results: rows that left.
        comparisons: pairs that a join compared.
    """

    stage: str
    rows: int
    took_ns: int
    released: int = 0
    results: int = 0
    comparisons: int = 0

    @classmethod
    def of(cls, done: Slice, took_ns: int) -> MeasuredSlice:
        """Return the measurement of a slice."""
        return cls(done.stage, done.rows, took_ns, done.released, done.results, done.comparisons)


class MeasuredCost:
    """Costs measured by a real clock, which virtual time then follows.

    Args:
        clock_ns: clock of the CPU, or of the wall.

    Attributes:
        slices: measurements of all slices, in order.
    """

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._since_ns = 0
        self.slices: list[MeasuredSlice] = []

    def for_stages(self, stages: Iterable[Stage]) -> MeasuredCost:
        """Return this model: it has no settings by stage."""
        del stages
        return self

    def begin(self) -> None:
        """Note the begin of a slice."""
        self._since_ns = self._clock_ns()

    def slice_ns(self, done: Slice, rng: np.random.Generator, *, now_ns: int = 0) -> int:
        """Return the measured time of a slice."""
        del rng, now_ns
        took_ns = max(1, self._clock_ns() - self._since_ns)
        self.slices += [MeasuredSlice.of(*share) for share in done.shares(took_ns)]
        return took_ns


class NotedCost(MeasuredCost):
    """Costs of a model, recorded like measured ones."""

    def __init__(self, model: CostModel) -> None:
        super().__init__(lambda: 0)
        self._model = model

    def for_stages(self, stages: Iterable[Stage]) -> NotedCost:
        """Return the costs of these stages, recorded in the same list."""
        made = NotedCost(self._model.for_stages(stages))
        made.slices = self.slices
        return made

    def slice_ns(self, done: Slice, rng: np.random.Generator, *, now_ns: int = 0) -> int:
        """Return the model's time of a slice."""
        took_ns = self._model.slice_ns(done, rng, now_ns=now_ns)
        self.slices += [MeasuredSlice.of(*share) for share in done.shares(took_ns)]
        return took_ns


@checked_fields
@dataclass(frozen=True, kw_only=True)
class LinkModel:
    """Link between nodes, with delay and capacity; messages of a channel never overtake.

    ```
    slot ──▶ queue ──▶ bytes_per_s ──▶ delay, jitter ──▶ slot of another node
    ```

    A link goes from each node to each other. If it has a capacity, waiting messages go in stimulus
    order, as in [mace] §VII-B. Only rows have a size (`Batch.nbytes`), headers of messages and
    credit have none. Between slots of one node there is only the delay.

    Attributes:
        delay_ns: least delay, >= 0.
        jitter_ns: largest further delay, drawn per message, >= 0.
        bytes_per_s: capacity of the link from one node to another, > 0; None if unlimited.
        between: other models for some links: {(from node, to node): its model}.
    """

    delay_ns: int = 100_000
    jitter_ns: int = 0
    bytes_per_s: float | None = None
    between: Mapping[tuple[str, str], LinkModel] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if min(self.delay_ns, self.jitter_ns) < 0:
            raise SettingError(f"delays cannot be negative: {self}")
        if self.bytes_per_s is not None and not 0 < self.bytes_per_s < float("inf"):
            raise SettingError(
                f"a link of bytes_per_s={self.bytes_per_s} carries nothing or anything; give a "
                "finite number above 0, or None for a link without a limit"
            )
        for pair, link in self.between.items():
            if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(link, LinkModel)):
                raise SettingError(
                    f"`between` has {shown(pair)}: {shown(link)}; write "
                    "{('node-1', 'node-2'): LinkModel(…)}"
                )
        if any(link.between for link in self.between.values()):
            raise SettingError("a model in `between` has a `between` of its own; omit it there")

    @property
    def least_delay_ns(self) -> int:
        """Least delay over all links."""
        return min([self.delay_ns, *(link.delay_ns for link in self.between.values())])

    def of(self, source: str, target: str) -> LinkModel:
        """Return the link from one node to another."""
        return self.between.get((source, target), self)

    def check_nodes(self, nodes: Sequence[str]) -> None:
        """Check that the nodes of all links exist.

        Raises:
            SettingError: a node of a link does not exist.
        """
        odd = [name for pair in self.between for name in pair if name not in nodes]
        if odd:
            raise SettingError(
                f"`between` has a link of node {odd[0]!r}, which is not there; there are "
                f"{', '.join(nodes)}"
            )

    def travel_ns(self, rng: np.random.Generator) -> int:
        """Return one message's time on the link."""
        return self.delay_ns + (int(rng.integers(0, self.jitter_ns + 1)) if self.jitter_ns else 0)


@dataclass(frozen=True, kw_only=True)
class TunerModel:
    """Model of a tuner; by default beside the slots, without delay and deaths.

    Attributes:
        link: delay of questions, answers and commands, which may overtake each other and have no
            size. None if there is no delay.
        takes_ns: time of a decision, >= 0.
        deaths_ns: times of deaths and of successors: ((from, until), …), ascending.
        successor: makes a successor's policy from the samples so far. If None, a copy of the first
            policy, as it was before it began.
    """

    link: LinkModel | None = None
    takes_ns: int = 0
    deaths_ns: tuple[tuple[int, int], ...] = ()
    successor: Callable[[Sequence[StageSample]], Decider] | None = None

    def __post_init__(self) -> None:
        times = [at_ns for death in self.deaths_ns for at_ns in death]
        if self.takes_ns < 0 or times != sorted(set(times)):
            raise SettingError(f"{self}: no decision takes less than no time, and deaths ascend")
